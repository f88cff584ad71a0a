//! Lists of words that are made of other lists.

/// These lists, one after the other. A list of words that has another's words in it says them once.
///
/// For constants: it does not compile unless there are `LENGTH` words in all.
pub const fn joined<const LENGTH: usize>(lists: &[&[&'static str]]) -> [&'static str; LENGTH] {
    let mut all = [""; LENGTH];
    let (mut count, mut rest) = (0, lists);
    while let [list, others @ ..] = rest {
        let mut words = *list;
        while let [word, more @ ..] = words {
            all[count] = word;
            count += 1;
            words = more;
        }
        rest = others;
    }
    assert!(count == LENGTH, "every word has its place");
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_all_lists_stand_in_their_order() {
        const ALL: [&str; 3] = joined(&[&["a", "b"], &[], &["c"]]);
        assert_eq!(ALL, ["a", "b", "c"]);
    }
}
