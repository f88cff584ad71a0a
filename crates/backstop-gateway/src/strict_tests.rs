use super::*;
use http::Request;

fn checked(version: Version, method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<Box<str>, Fault> {
    let mut request = Request::builder().version(version).method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    check(&request.body(()).unwrap().into_parts().0, "edge", false)
}

fn get(headers: &[(&str, &str)]) -> Result<Box<str>, Fault> {
    checked(Version::HTTP_11, "GET", "/", headers)
}

const HOSTED: (&str, &str) = ("host", "shop.example");

/// RFC 9112 sections 3.2 and 3.2.2, RFC 9113 section 8.3.1.
#[test]
fn exactly_one_valid_host() {
    assert_eq!(get(&[("host", "Shop.Example:8080")]).as_deref(), Ok("shop.example"));
    assert_eq!(get(&[("host", "shop.example.")]).as_deref(), Ok("shop.example"));
    assert_eq!(get(&[("host", "shop.example.:80")]).as_deref(), Ok("shop.example"));
    assert_eq!(get(&[("host", ".")]), Err(Fault::Host));
    assert_eq!(get(&[("host", "[::1]:80")]).as_deref(), Ok("[::1]"));
    assert_eq!(get(&[]), Err(Fault::Host));
    assert_eq!(get(&[HOSTED, HOSTED]), Err(Fault::Host));
    for invalid in ["", "a b", "user@shop.example", "a/b", "shop.example, other"] {
        assert_eq!(get(&[("host", invalid)]), Err(Fault::Host), "{invalid:?}");
    }
    assert_eq!(checked(Version::HTTP_10, "GET", "/", &[]).as_deref(), Ok(""));
    let absolute = "http://other.example/p";
    assert_eq!(checked(Version::HTTP_11, "GET", absolute, &[HOSTED]).as_deref(), Ok("other.example"));
    assert_eq!(checked(Version::HTTP_11, "GET", absolute, &[]), Err(Fault::Host));
    assert_eq!(checked(Version::HTTP_2, "GET", absolute, &[]).as_deref(), Ok("other.example"));
    assert_eq!(checked(Version::HTTP_2, "GET", absolute, &[HOSTED]), Err(Fault::Host));
}

/// RFC 9112 sections 6.1 and 6.3.
#[test]
fn the_end_of_the_content_must_be_certain() {
    let with = |headers: &[(&str, &str)]| {
        let mut all = vec![HOSTED];
        all.extend_from_slice(headers);
        checked(Version::HTTP_11, "POST", "/", &all).err()
    };
    assert_eq!(with(&[("transfer-encoding", "chunked")]), None);
    assert_eq!(with(&[("transfer-encoding", "Chunked")]), None);
    assert_eq!(with(&[("content-length", "0")]), None);
    for coding in ["gzip, chunked", "chunked, chunked", "gzip", "identity", "xchunked", ""] {
        assert_eq!(with(&[("transfer-encoding", coding)]), Some(Fault::TransferCoding), "{coding}");
    }
    let chunked = ("transfer-encoding", "chunked");
    assert_eq!(with(&[chunked, chunked]), Some(Fault::Framing));
    assert_eq!(with(&[chunked, ("content-length", "3")]), Some(Fault::Framing));
    for length in ["+3", "-3", "3, 3", "0x3", "", "3 "] {
        assert_eq!(with(&[("content-length", length)]), Some(Fault::Framing), "{length}");
    }
    assert_eq!(with(&[("content-length", "3"), ("content-length", "3")]), Some(Fault::Framing));
    assert_eq!(checked(Version::HTTP_10, "POST", "/", &[HOSTED, chunked]), Err(Fault::Framing));
}

#[test]
fn paths_are_not_resolved_twice() {
    let path = |path: &str| checked(Version::HTTP_11, "GET", path, &[HOSTED]).err();
    for dotted in [
        "/..",
        "/a/../b",
        "/a/./b",
        "/a/%2e%2E/b",
        "/a/.%2e",
        "/a/%2e",
        "/a/..%2fb",
        "/a%5C..%5cb",
        "/a/..;/b",
        "/a/..;x=1",
        "/a/.;/b",
    ] {
        assert_eq!(path(dotted), Some(Fault::Path), "{dotted}");
    }
    for plain in [
        "/",
        "/a...b",
        "/...",
        "/.well-known/x",
        "/a..",
        "/a?x=/../b",
        "/%2f..x",
        "/a;../b",
        "/a..;b",
        "/;..",
    ] {
        assert_eq!(path(plain), None, "{plain}");
    }
}

/// RFC 9110 section 7.4: what is for another scheme was not received over a connection that is secured for it, unless
/// whoever passes it on says so and is trusted.
#[test]
fn another_scheme_is_served_to_the_trusted_alone() {
    for (version, uri) in [
        (Version::HTTP_11, "https://shop.example/p"),
        (Version::HTTP_11, "HTTPS://shop.example/p"),
        (Version::HTTP_2, "https://shop.example/p"),
        (Version::HTTP_2, "ftp://shop.example/p"),
    ] {
        assert_eq!(checked(version, "GET", uri, &[HOSTED]), Err(Fault::Misdirected), "{uri}");
        let request = Request::builder().version(version).uri(uri).header("host", "shop.example");
        let head = request.body(()).unwrap().into_parts().0;
        assert_eq!(check(&head, "edge", true).as_deref(), Ok("shop.example"), "{uri}");
    }
    for uri in ["http://shop.example/p", "HTTP://shop.example/p", "/p"] {
        assert!(checked(Version::HTTP_11, "GET", uri, &[HOSTED]).is_ok(), "{uri}");
    }
    assert_eq!(Fault::Misdirected.status(), 421);
}

#[test]
fn only_the_forwarding_fields_are_the_proxies_own() {
    for name in ["forwarded", "x-forwarded-for", "x-forwarded-prefix", "x-forwarded-ssl", "x-forwarded-"] {
        assert!(is_forwarding(&HeaderName::from_static(name)), "{name}");
    }
    for name in ["x-forwarded", "forwarded-for", "x-forward-for", "via", "x-real-ip"] {
        assert!(!is_forwarding(&HeaderName::from_static(name)), "{name}");
    }
}

#[test]
fn what_cannot_be_forwarded_is_refused() {
    assert_eq!(get(&[HOSTED, ("connection", "authorization")]), Err(Fault::NominatedField));
    assert_eq!(checked(Version::HTTP_11, "TRACE", "/", &[HOSTED]), Err(Fault::Method));
    assert_eq!(get(&[HOSTED, ("expect", "200-ok")]), Err(Fault::Expectation));
    assert!(get(&[HOSTED, ("expect", "100-Continue")]).is_ok());
    assert_eq!(get(&[HOSTED, ("via", "1.1 other, 1.1 EDGE")]), Err(Fault::Loop));
    assert!(get(&[HOSTED, ("via", "1.1 edges (edge)")]).is_ok());
}

/// As many bytes as it has on the wire, where it is written without what could be left out.
#[test]
fn a_head_is_measured_as_it_is_written() {
    let large = |version, method: &str, uri: &str, headers: &[(&str, &str)], most| {
        let mut request = Request::builder().version(version).method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_too_large(&request.body(()).unwrap().into_parts().0, most)
    };
    for (method, uri, wire) in [
        ("GET", "/", "GET / HTTP/1.1\r\nhost: a\r\nx: 12\r\n\r\n"),
        ("DELETE", "/p?q=1", "DELETE /p?q=1 HTTP/1.1\r\nhost: a\r\nx: 12\r\n\r\n"),
        ("GET", "http://a:81/p", "GET http://a:81/p HTTP/1.1\r\nhost: a\r\nx: 12\r\n\r\n"),
        ("OPTIONS", "*", "OPTIONS * HTTP/1.1\r\nhost: a\r\nx: 12\r\n\r\n"),
    ] {
        let fields = [("host", "a"), ("x", "12")];
        assert!(!large(Version::HTTP_11, method, uri, &fields, wire.len()), "{wire}");
        assert!(large(Version::HTTP_11, method, uri, &fields, wire.len() - 1), "{wire}");
        assert!(!large(Version::HTTP_2, method, uri, &fields, 1));
    }
}
