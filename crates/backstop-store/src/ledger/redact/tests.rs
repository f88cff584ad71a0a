use super::*;

fn kept(pointers: &[&str], body: &str) -> Option<String> {
    let keep = Keep::without(pointers.iter().copied()).unwrap();
    let kept = keep.of(201, &HeaderMap::new(), Some(body.as_bytes()));
    kept.body.map(|body| String::from_utf8(body.into()).unwrap())
}

/// By hand. Everything else stays byte for byte.
#[test]
fn the_values_at_the_declared_places_are_replaced_and_nothing_else() {
    let cases = [
        (r#"{"card":"4111","a":1.0}"#, r#"{"card":"[redacted]","a":1.0}"#),
        (r#" { "card" : {"pan": [1,2]} , "b":1e5 } "#, r#" { "card" : "[redacted]" , "b":1e5 } "#),
        (r#"{"a":{"card":1},"list":[1,{"x":2},3]}"#, r#"{"a":{"card":1},"list":[1,{"x":"[redacted]"},3]}"#),
        (r#"{"card":1,"card":2}"#, r#"{"card":"[redacted]","card":"[redacted]"}"#),
        (r#"{"c\u0061rd":"4111"}"#, r#"{"c\u0061rd":"[redacted]"}"#),
        (r#"{"a/b":{"~":7}}"#, r#"{"a/b":{"~":"[redacted]"}}"#),
        (r#"{"😀":1,"\ud83d\ude00":2}"#, r#"{"😀":"[redacted]","\ud83d\ude00":"[redacted]"}"#),
        (r#"[9007199254740993]"#, r#"[9007199254740993]"#),
        (r#""card""#, r#""card""#),
    ];
    for (body, expected) in cases {
        let found = kept(&["/card", "/list/1/x", "/a~1b/~0", "/😀"], body);
        assert_eq!(found.as_deref(), Some(expected), "{body}");
    }
}

#[test]
fn content_in_which_a_place_cannot_be_looked_for_is_not_kept() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    for body in [
        "",
        "card=4111",
        "{\"card\":\"4111\"",
        "{\"a\":1} x",
        "{\"card\":01}",
        "{'card':1}",
        "[1,]",
        "{\"a\" 1}",
        "nul",
        "\"\u{1}\"",
        "\"\\x\"",
        "1.",
        "-",
        "{\"a\":1,}",
        &deep,
    ] {
        assert_eq!(kept(&["/card"], body), None, "{body}");
    }
    assert_eq!(kept(&[], "card=4111").as_deref(), Some("card=4111"), "nothing is to be looked for");
    assert!(kept(&["/card"], &deep[1..deep.len() - 1]).is_some());
}

/// 16 KiB.
#[test]
fn content_is_kept_whole_up_to_its_limit_or_not_at_all() {
    let keep = Keep::default();
    let length =
        |bytes: usize| keep.of(200, &HeaderMap::new(), Some(&vec![b'x'; bytes])).body.map(|body| body.len());
    assert_eq!(length(16_384), Some(16_384));
    assert_eq!(length(16_385), None);
    assert_eq!(keep.of(200, &HeaderMap::new(), None).body, None, "not all of it came");
}

#[test]
fn nothing_that_identifies_or_grants_is_kept() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("location", "/payments/1"),
        ("etag", "\"1\""),
        ("set-cookie", "session=secret"),
        ("authorization", "secret"),
        ("x-api-key", "secret"),
    ] {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    let body = Some(&b"{}"[..]);
    let names = |kept: &KeptAnswer| kept.fields.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    let all = Keep::default().of(201, &headers, body);
    assert_eq!(names(&all), ["content-type", "location", "etag"]);
    let fields = Keep::fields().of(201, &headers, body);
    assert_eq!((names(&fields).len(), &fields.body), (3, &None));
    assert_eq!(Keep::status().of(201, &headers, body), KeptAnswer::of_status(201), "card data");
    headers.insert("location", http::HeaderValue::from_str(&"x".repeat(2049)).unwrap());
    assert_eq!(names(&Keep::default().of(201, &headers, body)), ["content-type", "etag"]);
}

#[test]
fn a_text_that_is_no_pointer_is_refused() {
    for text in ["", "card", "/a~", "/a~2", "/~~0"] {
        assert_eq!(Keep::without([text]), Err(NotAPointer), "{text}");
    }
    assert!(Keep::without(["/", "/a/0/b~1c"]).is_ok());
}
