use super::{Size, screen};
use backstop_gateway::status::View;

/// What a gateway said while its catalog refused connections, with 200 routes in its policy of which two need attention.
fn known() -> View {
    let mut view: View = serde_json::from_str(include_str!("known.json")).expect("a model");
    let quiet = view.routes.iter().find(|route| route.name == "search").expect("a quiet route").clone();
    for number in view.routes.len()..200 {
        let mut route = quiet.clone();
        route.name = format!("quiet-{number}");
        view.routes.push(route);
    }
    view
}

const USUAL: Size = Size { columns: 80, lines: 24 };

#[test]
fn a_screen_has_what_needs_attention_and_is_no_larger_than_the_terminal() {
    for size in [USUAL, Size { columns: 60, lines: 16 }, Size { columns: 200, lines: 50 }] {
        let text = screen(&known(), size, false);
        assert!(text.lines().count() < size.lines, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= size.columns), "{text}");
        let at = |word: &str| text.lines().position(|line| line.starts_with(word));
        let (order, description) = (at("order "), at("description"));
        assert!(text.lines().any(|line| line.starts_with("order") && line.contains("refusing")), "{text}");
        // Sixteen lines have room for the worst route alone.
        assert!(
            order.is_some() && (size.lines < 24 || (description.is_some() && order < description)),
            "{text}"
        );
        assert!(text.lines().any(|line| line.starts_with("catalog") && line.contains("  open  ")), "{text}");
        assert!(text.contains("more\n"), "{text}");
    }
}

#[test]
fn colour_is_added_to_words_and_never_instead_of_them() {
    let plain = screen(&known(), USUAL, false);
    let coloured = screen(&known(), USUAL, true);
    assert!(!plain.contains('\u{1b}'));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, code)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = code.split_once('m').expect("a code ends").1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn what_another_process_says_does_not_steer_the_terminal() {
    let mut view = known();
    view.gateway.name = "edge\u{1b}[2J\u{7}".into();
    assert!(!screen(&view, USUAL, false).contains('\u{1b}'));
}
