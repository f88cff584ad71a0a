//! Text of others on a terminal: names from a policy, from another process, or from a file that anybody may have edited.

/// As it is, but for what would steer the terminal or turn the order of what is read: such characters are shown as replaced.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|one| if steers(one) { char::REPLACEMENT_CHARACTER } else { one }).collect()
}

/// The same of whole lines.
pub(crate) fn harmless_lines(text: &str) -> String {
    text.chars()
        .map(|one| if one != '\n' && steers(one) { char::REPLACEMENT_CHARACTER } else { one })
        .collect()
}

/// Control characters, and those that turn the direction of writing (Unicode Standard Annex 9).
fn steers(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        for steering in ['\u{1b}', '\u{7}', '\u{9b}', '\r', '\u{202e}', '\u{2066}', '\u{200f}'] {
            assert_eq!(harmless(&format!("a{steering}b")), "a\u{fffd}b");
            assert_eq!(harmless_lines(&format!("a{steering}\nb")), "a\u{fffd}\nb");
        }
        assert_eq!(harmless("a\nb"), "a\u{fffd}b");
        assert_eq!(harmless("catálogo 目录"), "catálogo 目录");
    }
}
