//! Which requests are the same.

use backstop_engine::policy::effect::Fingerprint;
use http::Request;

use super::*;

fn of(rules: &Fingerprint, target: &str, media_type: &str, content: &str) -> Result<Vec<Vec<u8>>, SaidTwice> {
    let request = Request::post(target).header(CONTENT_TYPE, media_type).body(()).unwrap();
    let (head, ()) = request.into_parts();
    Ok(parts(rules, &head, content.as_bytes())?.into_iter().map(Cow::into_owned).collect())
}

fn json(content: &str) -> Result<Vec<Vec<u8>>, SaidTwice> {
    of(&Fingerprint::Whole, "/pay", "application/json", content)
}

/// By hand: RFC 8259 section 4 gives the order of names no meaning, section 2 white space none.
#[test]
fn order_of_names_white_space_and_escapes_make_no_difference() {
    let one = json(r#"{"amount": 7, "to": {"a": "x", "b": [1, 2]}}"#).unwrap();
    for same in [
        r#"{"to":{"b":[1,2],"a":"x"},"amount":7}"#,
        "\u{feff}{\"amount\":7,\n\t\"to\":{\"a\":\"\\u0078\",\"b\":[1,2]}} ",
        r#"{"\u0061mount":7,"to":{"a":"x","b":[1,2]}}"#,
    ] {
        assert_eq!(json(same).unwrap(), one, "{same}");
    }
}

/// Numbers by their text: the first pair is one `f64`.
#[test]
fn whatever_says_something_else_is_another_request() {
    let different = [
        r#"{"a":9007199254740992}"#,
        r#"{"a":9007199254740993}"#,
        r#"{"a":1}"#,
        r#"{"a":1.0}"#,
        r#"{"a":10e-1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":[1]}"#,
        r#"{"a":[1,2]}"#,
        r#"{"a":[2,1]}"#,
        r#"{"a":[[1],2]}"#,
        r#"{"a":null}"#,
        r#"{"a":true}"#,
        r#"{"a":{}}"#,
        r#"{"a":[]}"#,
        r#"{"a":""}"#,
        r#"{"a":"","b":""}"#,
        r#"{"a":"\"1:b"}"#,
        r#"{"A":1}"#,
        "{}",
        "[]",
        "",
        "a=1",
        "a=1 ",
        r#"{"1:a:1,}"#,
        r#""7:\ud800""#,
        r#""\ud800""#,
        r#""\\ud800""#,
    ];
    for (at, one) in different.iter().enumerate() {
        for other in different.iter().skip(at + 1) {
            assert_ne!(json(one).unwrap(), json(other).unwrap(), "{one} {other}");
        }
    }
}

#[test]
fn a_name_that_stands_twice_is_refused_wherever_it_stands() {
    let deep = format!("{}{{\"a\":1,\"a\":1}}{}", "[".repeat(5), "]".repeat(5));
    for twice in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"x":{"a":1,"a":2}}"#, &deep] {
        assert_eq!(json(twice), Err(SaidTwice), "{twice}");
        let only = Fingerprint::Only(vec!["/other".into()]);
        assert_eq!(of(&only, "/pay", "application/json", twice), Err(SaidTwice), "{twice}");
    }
}

#[test]
fn target_query_and_media_type_are_part_of_what_is_asked() {
    let at = |target, media_type| of(&Fingerprint::Whole, target, media_type, "{}").unwrap();
    let one = at("/pay/7?b=2&a=1", "application/json");
    assert_eq!(at("/pay/7?a=1&b=2", "Application/JSON"), one);
    assert_eq!(at("/pay/%37?a=1&b=2", "application/json"), one);
    for (target, media_type) in [
        ("/pay/8?a=1&b=2", "application/json"),
        ("/pay/7?a=1", "application/json"),
        ("/pay/7?a=1&b=2&dry_run=true", "application/json"),
        ("/pay/7?a=2&b=2", "application/json"),
        ("/pay/7?a=1&b=2", "text/plain"),
        ("http://other.example/pay/7?a=1&b=2", "application/json"),
        ("/pay/7?a=1&b=2", "application/json;v=A"),
    ] {
        assert_ne!(at(target, media_type), one, "{target} {media_type}");
    }
    assert_ne!(at("/pay", "multipart/mixed;boundary=a"), at("/pay", "multipart/mixed;boundary=A"));
    // Which of two members of one name comes first may matter to whoever reads them.
    assert_ne!(at("/pay?a=1&%61=2", "x/y"), at("/pay?%61=2&a=1", "x/y"));
    assert_ne!(at("/pay?a=1&a=2", "x/y"), at("/pay?a=2&a=1", "x/y"));
}

#[test]
fn what_a_route_ignores_may_differ_and_what_it_names_must_be_the_same() {
    let without = Fingerprint::Without(vec!["/sent_at".into(), "/items/0/note".into()]);
    let at = |rules, content| of(rules, "/pay", "application/json", content).unwrap();
    let one = at(&without, r#"{"amount":7,"sent_at":1,"items":[{"note":"x","id":1}]}"#);
    assert_eq!(at(&without, r#"{"amount":7,"items":[{"id":1}]}"#), one);
    assert_eq!(at(&without, r#"{"amount":7,"sent_at":{"a":2},"items":[{"note":"y","id":1}]}"#), one);
    assert_ne!(at(&without, r#"{"amount":8,"items":[{"id":1}]}"#), one);
    assert_ne!(at(&without, r#"{"amount":7,"items":[{"id":1},{"note":"x"}]}"#), one);
    let only = Fingerprint::Only(vec!["/amount".into(), "/to".into()]);
    let one = at(&only, r#"{"amount":7,"to":"a","at":1}"#);
    assert_eq!(at(&only, r#"{"to":"a","at":2,"amount":7}"#), one);
    assert_ne!(at(&only, r#"{"amount":7,"at":1}"#), one);
    assert_ne!(at(&only, r#"{"amount":"7","to":"a","at":1}"#), one);
}

/// Deep nesting is bounded work: within 16 levels what is said is compared, beyond them the text.
#[test]
fn deep_content_is_compared_by_its_text() {
    let below = |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let (spaced, dense) = (r#"{ "a": 1 }"#, r#"{"a":1}"#);
    assert_eq!(json(&below(15, spaced)).unwrap(), json(&below(15, dense)).unwrap());
    assert_ne!(json(&below(16, spaced)).unwrap(), json(&below(16, dense)).unwrap());
    let twice = r#"{"a":1,"a":1}"#;
    assert_eq!(json(&below(15, twice)), Err(SaidTwice));
    assert!(json(&below(16, twice)).is_ok());
    assert_ne!(json(&below(100, "1")).unwrap(), json(&below(100, "2")).unwrap());
}

/// Half of a surrogate pair is no text (RFC 8259 section 8.2): what one reader takes for one name is two for another, and behind it
/// a name could stand twice unseen.
#[test]
fn a_name_that_is_no_text_is_refused() {
    for content in [
        r#"{"\ud800":1}"#,
        r#"{"x":{"\udc00\ud800":1}}"#,
        r#"{"amount":1,"\ud800":0,"amount":2}"#,
        r#"[{"\ud800":1}]"#,
    ] {
        assert_eq!(json(content), Err(SaidTwice), "{content}");
        let only = Fingerprint::Only(vec!["/amount".into()]);
        assert_eq!(of(&only, "/pay", "application/json", content), Err(SaidTwice), "{content}");
    }
    assert!(
        json(r#"{"\ud83d\ude00":"\ud800"}"#).is_ok(),
        "a pair is a character, and a value may be what it likes"
    );
}
