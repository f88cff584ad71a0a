//! Whether a request that changes something comes from an operator, and not from a page in an operator's browser.
//!
//! A page of another site can send requests to addresses that only the operator's machine reaches. Its browser lets a form
//! send three media types without asking beforehand, none of them JSON, and names the page's origin in `Origin` (Fetch
//! standard, sections 2.2.1 and 3.2). So the content must be JSON, and an origin, if one is named, the port's own: `http://` and
//! what `Host` says. A name can be made to lead anywhere after the page was loaded, so the host must then be an address
//! or `localhost`. Browsers also say in `Sec-Fetch-Site` whether the page is of the same origin (Fetch Metadata, section 2.3).
//! Tools send neither.

use std::net::{IpAddr, SocketAddr};

use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, StatusCode};

const SITE: &str = "sec-fetch-site";

pub(super) fn check(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    if !is_own(headers) {
        return Err((StatusCode::FORBIDDEN, "pages of other sites change nothing here"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content must be `application/json`"))
    }
}

fn is_own(headers: &HeaderMap) -> bool {
    if headers.get_all(SITE).iter().any(|site| site != "same-origin") {
        return false;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let named = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
    origins.next().is_none() && named == Some(host) && cannot_be_led_elsewhere(host)
}

/// Whether a host is an address or `localhost`: no name that anybody could make lead here.
pub(super) fn cannot_be_led_elsewhere(host: &str) -> bool {
    let is_address = host.parse::<SocketAddr>().is_ok()
        || host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    is_address || host.split(':').next() == Some("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn answer(host: &str, origins: &[&str], kind: Option<&str>) -> Option<u16> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        for origin in origins {
            headers.append(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        if let Some(kind) = kind {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        }
        check(&headers).err().map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_json_is_accepted() {
        for kind in ["application/json", "Application/JSON; charset=utf-8"] {
            assert_eq!(answer("gw:9901", &[], Some(kind)), None);
        }
        let forms = [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/json-x",
            "",
        ];
        for kind in forms.into_iter().map(Some).chain([None]) {
            assert_eq!(answer("127.0.0.1:9901", &[], kind), Some(415), "{kind:?}");
        }
    }

    #[test]
    fn what_a_browser_says_of_the_page_counts() {
        let check = |sites: &[&str]| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            for site in sites {
                headers.append(SITE, HeaderValue::from_str(site).unwrap());
            }
            super::check(&headers).err().map(|(status, _)| status.as_u16())
        };
        assert_eq!(check(&["same-origin"]), None);
        for sites in [&["cross-site"][..], &["same-site"], &["none"], &[""], &["same-origin", "cross-site"]] {
            assert_eq!(check(sites), Some(403), "{sites:?}");
        }
    }

    #[test]
    fn only_its_own_pages_are_accepted() {
        let json = Some("application/json");
        for (host, origin) in [
            ("127.0.0.1:9901", "http://127.0.0.1:9901"),
            ("10.0.0.7", "http://10.0.0.7"),
            ("[::1]:9901", "http://[::1]:9901"),
            ("[::1]", "http://[::1]"),
            ("localhost:9901", "http://localhost:9901"),
        ] {
            assert_eq!(answer(host, &[origin], json), None, "{origin}");
        }
        for (host, origins) in [
            ("127.0.0.1:9901", &["http://evil.example"][..]),
            ("127.0.0.1:9901", &["http://127.0.0.1:9902"]),
            ("127.0.0.1:9901", &["https://127.0.0.1:9901"]),
            ("127.0.0.1:9901", &["null"]),
            ("127.0.0.1:9901", &[""]),
            ("127.0.0.1:9901", &["http://127.0.0.1:9901", "http://evil.example"]),
            ("127.0.0.1:9901", &["http://evil.example", "http://127.0.0.1:9901"]),
            // A name that was made to lead here after the page was loaded.
            ("evil.example:9901", &["http://evil.example:9901"]),
            ("127.0.0.1.evil.example", &["http://127.0.0.1.evil.example"]),
            ("localhost.evil.example", &["http://localhost.evil.example"]),
        ] {
            assert_eq!(answer(host, origins, json), Some(403), "{host} {origins:?}");
        }
    }
}
