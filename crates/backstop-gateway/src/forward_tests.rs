use super::*;

fn prepared(version: Version, uri: &str, headers: &[(&str, &str)], trusted: bool) -> HeaderMap {
    let mut request = Request::builder().version(version).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut head = request.body(()).unwrap().into_parts().0;
    prepare(&mut head, "192.0.2.7:4711".parse().unwrap(), trusted, "edge");
    head.headers
}

fn lines(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// RFC 9110 section 7.6.3: the received protocol and a pseudonym, after whatever stands there.
#[test]
fn every_request_gets_a_via_of_its_own() {
    let headers = prepared(Version::HTTP_11, "/", &[("host", "a"), ("via", "1.0 other")], false);
    assert_eq!(lines(&headers, "via"), ["1.0 other", "1.1 edge"]);
    assert_eq!(lines(&prepared(Version::HTTP_2, "http://a/", &[], false), "via"), ["2 edge"]);
}

#[test]
fn only_the_trusted_say_whom_a_request_comes_from() {
    let claimed = [
        ("host", "a"),
        ("x-forwarded-for", "203.0.113.1"),
        ("forwarded", "for=x"),
        ("x-forwarded-proto", "https"),
    ];
    let distrusted = prepared(Version::HTTP_11, "/", &claimed, false);
    assert_eq!(lines(&distrusted, "x-forwarded-for"), ["192.0.2.7"]);
    assert_eq!(lines(&distrusted, "x-forwarded-proto"), ["http"]);
    assert!(!distrusted.contains_key("forwarded"));
    let trusted = prepared(Version::HTTP_11, "/", &claimed, true);
    assert_eq!(lines(&trusted, "x-forwarded-for"), ["203.0.113.1", "192.0.2.7"]);
    assert_eq!(lines(&trusted, "x-forwarded-proto"), ["https"]);
}

#[test]
fn the_host_is_the_targets() {
    let headers = prepared(Version::HTTP_11, "http://b.example:81/p", &[("host", "a")], false);
    assert_eq!(lines(&headers, "host"), ["b.example:81"]);
    assert_eq!(lines(&headers, "x-forwarded-host"), ["b.example:81"]);
}

/// As in a copy's key: by two spellings of one host the origin is asked the same.
#[test]
fn the_host_goes_on_in_one_spelling() {
    for (named, spelt) in [
        ("SHOP.Example", "shop.example"),
        ("shop.example.", "shop.example"),
        ("shop.example:80", "shop.example"),
        ("shop.example:", "shop.example"),
        ("Shop.example.:8080", "shop.example:8080"),
        ("[::1]:80", "[::1]"),
    ] {
        for (uri, host) in [("/", named), (&*format!("http://{named}/"), "other")] {
            let headers = prepared(Version::HTTP_11, uri, &[("host", host)], false);
            assert_eq!(lines(&headers, "host"), [spelt], "{named}");
            assert_eq!(lines(&headers, "x-forwarded-host"), [spelt], "{named}");
        }
    }
    assert_eq!(lines(&prepared(Version::HTTP_10, "/", &[], false), "host"), [""; 0]);
}

#[test]
fn cookie_lines_are_joined() {
    let headers = prepared(Version::HTTP_2, "http://a/", &[("cookie", "a=1"), ("cookie", "b=2")], false);
    assert_eq!(lines(&headers, "cookie"), ["a=1; b=2"]);
}
