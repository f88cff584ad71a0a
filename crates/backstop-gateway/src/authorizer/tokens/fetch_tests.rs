use super::*;

fn fetch(refresh_s: u64) -> Fetch {
    Fetch {
        id: DependencyId(0),
        name: "tokens".into(),
        path: Uri::from_static("/jwks?x=1"),
        host: HeaderValue::from_static("login.example"),
        refresh: Duration::from_secs(refresh_s),
        timeout: Duration::from_secs(5),
        algorithms: vec![Algorithm::ES256],
        keys: Arc::new(Keys::new(Duration::from_secs(3600))),
    }
}

/// 1, 2, 4, 8 and then every 10 s; and never less often than keys are fetched anyway.
#[test]
fn a_fetch_that_failed_is_made_again_with_growing_pauses() {
    let seconds: Vec<u64> = (0..=6).map(|failed| fetch(900).pause(failed).as_secs()).collect();
    assert_eq!(seconds, [900, 1, 2, 4, 8, 10, 10]);
    assert_eq!(fetch(900).pause(u32::MAX).as_secs(), 10);
    let seconds: Vec<u64> = (0..=3).map(|failed| fetch(3).pause(failed).as_secs()).collect();
    assert_eq!(seconds, [3, 1, 2, 3]);
}

#[test]
fn a_fetch_carries_nothing_of_anybody() {
    let request = fetch(900).request();
    assert_eq!((request.method(), request.uri().to_string().as_str()), (&Method::GET, "/jwks?x=1"));
    let fields: Vec<(&str, &str)> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(
        fields,
        [("host", "login.example"), ("accept", "application/json"), ("cache-control", "no-cache")]
    );
}

/// RFC 9111 section 5.1: whole seconds. What cannot be read is no new answer, and nobody knows how old.
#[test]
fn an_age_is_a_number_of_seconds_or_beyond_every_measure() {
    let age = |values: &[&str]| {
        let lines = values.iter().map(|value| (AGE, HeaderValue::from_str(value).unwrap()));
        received_age(&lines.collect())
    };
    assert_eq!(age(&[]), Duration::ZERO);
    assert_eq!(age(&["0"]), Duration::ZERO);
    assert_eq!(age(&["59"]), Duration::from_secs(59));
    assert_eq!(age(&["3", "7"]), Duration::from_secs(7));
    for unreadable in ["", "-1", "x", "1.5", "1, 2"] {
        assert_eq!(age(&[unreadable]), Duration::MAX, "{unreadable}");
    }
}
