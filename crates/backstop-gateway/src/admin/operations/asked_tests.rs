use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn from(text: &str) -> Option<i64> {
    query(&format!("from={text}")).ok().map(|asked| asked.filter.from.as_unix_ns())
}

/// From `date -u -d DATE +%s`.
#[test]
fn a_date_is_one_moment_in_utc() {
    let seconds = |seconds: i64| Some(seconds * 1_000_000_000);
    assert_eq!(from("1970-01-01"), Some(0));
    assert_eq!(from("2024-02-29"), seconds(1_709_164_800));
    assert_eq!(from("2000-03-01T00:00:00Z"), seconds(951_868_800));
    assert_eq!(from("2026-01-31T23:59:59Z"), seconds(1_769_903_999));
    assert_eq!(from("1969-12-31T23:59:59.999Z"), Some(-1_000_000));
    assert_eq!(from("2026-01-31T23:59:59.5Z"), Some(1_769_903_999_500_000_000));
    assert_eq!(from("2026-01-31T23%3A59%3A59Z"), seconds(1_769_903_999), "as tools encode it");
    for wrong in [
        "",
        "2026",
        "2026-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-1-1",
        "2026-01-01-01",
        "2026-01-31T23:59:59",
        "2026-01-31T23:59:59+01:00",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:60:00Z",
        "2026-01-31T23:59Z",
        "2026-01-31T23:59:59.Z",
        "2026-01-31T23:59:59.1234567890Z",
        "+026-01-31",
        "9999-12-31",
        "yesterday",
    ] {
        assert_eq!(from(wrong), None, "{wrong}");
    }
}

#[test]
fn a_query_is_whole_or_refused() {
    let nothing = query("").unwrap();
    assert_eq!((nothing.filter.state, nothing.filter.after, nothing.limit), (None, None, 100));
    assert_eq!(nothing.filter.from.as_unix_ns(), i64::MIN, "from the first one on");
    let asked = query(&format!("state=attention&limit=500&after=-7.{ID}")).unwrap();
    assert_eq!((asked.filter.state, asked.limit), (Some("attention"), 500));
    assert_eq!((asked.filter.from.as_unix_ns(), asked.filter.after), (-7, ID.parse().ok()));
    for wrong in [
        "state=open",
        "state=",
        "state=unknown&state=failed",
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=ten",
        "after=7",
        &format!("after=x.{ID}"),
        "after=7.0123",
        &format!("after=7.{ID}&from=1970-01-01"),
        "key=secret",
        "state=%zz",
        "state=%f",
        "state=%ff",
        "from=%+1",
    ] {
        assert!(query(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_decision_is_whole_or_refused() {
    let of = |body: &str| decision(body.as_bytes());
    for (outcome, expected) in [
        ("succeeded", Decision::Succeeded),
        ("failed", Decision::Failed),
        ("not_executed", Decision::NotExecuted),
    ] {
        let body = format!(r#"{{"outcome":"{outcome}","by":" ana ","reason":" asked the bank "}}"#);
        let (decision, by) = of(&body).unwrap();
        assert_eq!((decision, by.by(), by.reason()), (expected, "ana", "asked the bank"));
    }
    let long = |name: usize, reason: usize| {
        let (name, reason) = ("n".repeat(name), "r".repeat(reason));
        of(&format!(r#"{{"outcome":"failed","by":"{name}","reason":"{reason}"}}"#)).is_ok()
    };
    assert!(long(128, 1024));
    assert!(!long(129, 1024) && !long(128, 1025));
    for refused in [
        "",
        "{",
        "[]",
        r#""failed""#,
        "{}",
        r#"{"outcome":"failed","by":"ana"}"#,
        r#"{"outcome":"failed","reason":"r"}"#,
        r#"{"by":"ana","reason":"r"}"#,
        r#"{"outcome":"unknown","by":"ana","reason":"r"}"#,
        r#"{"outcome":1,"by":"ana","reason":"r"}"#,
        r#"{"outcome":"failed","by":"ana","reason":"  "}"#,
        r#"{"outcome":"failed","by":"","reason":"r"}"#,
        r#"{"outcome":"failed","by":["ana"],"reason":"r"}"#,
        r#"{"outcome":"failed","by":"ana","reason":"r","key":"k"}"#,
        r#"{"outcome":"failed","by":"ana","reason":"two\nlines"}"#,
        r#"{"outcome":"failed","by":"ana\u001b[2J","reason":"r"}"#,
        r#"{"outcome":"failed","by":"ana","reason":"r"} and more"#,
        r#"{"outcome":"failed","outcome":"succeeded","by":"ana","reason":"r"}"#,
        r#"{"outcome":"failed","by":"ana","\u0062y":"bob","reason":"r"}"#,
        r#"{"outcome":"failed","by":"ana","reason":"two\u2028lines"}"#,
    ] {
        assert!(of(refused).is_err(), "{refused}");
    }
}
