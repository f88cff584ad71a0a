use http::HeaderValue;

use super::*;

fn headers(lines: &[(http::HeaderName, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn an_answer_ends_in_exactly_one_way() {
    let (te, cl) = (TRANSFER_ENCODING, CONTENT_LENGTH);
    let of = |lines: &[(http::HeaderName, &'static str)]| framing(&headers(lines));
    assert_eq!(of(&[]), Some(Framing::UntilClose));
    assert_eq!(of(&[(te.clone(), "Chunked")]), Some(Framing::Delimited));
    assert_eq!(of(&[(cl.clone(), "0")]), Some(Framing::Delimited));
    for coding in ["gzip, chunked", "chunked, chunked", "gzip", "identity", "xchunked", "", "chunked;q=1"] {
        assert_eq!(of(&[(te.clone(), coding)]), None, "{coding}");
    }
    for length in ["", "+3", "-3", "3, 3", "3,4", "0x3", "3 3", "three"] {
        assert_eq!(of(&[(cl.clone(), length)]), None, "{length}");
    }
    assert_eq!(of(&[(te.clone(), "chunked"), (te.clone(), "chunked")]), None);
    assert_eq!(of(&[(cl.clone(), "3"), (cl.clone(), "3")]), None);
    assert_eq!(of(&[(te, "chunked"), (cl, "3")]), None);
}

#[test]
fn close_is_found_wherever_it_stands() {
    let of = |values: &[&'static str]| {
        let lines: Vec<_> = values.iter().map(|value| (CONNECTION, *value)).collect();
        says_close(&headers(&lines))
    };
    assert!(of(&["close"]) && of(&["keep-alive, Close"]) && of(&["x", " close "]));
    assert!(!of(&[]) && !of(&["keep-alive"]) && !of(&["closed, disclose"]));
}
