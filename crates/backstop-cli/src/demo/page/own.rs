//! Whether a request comes from the demo's own page, and not from a page of another site in the same browser.
//!
//! - Every request must call the page by what nobody else can be called: its own address, or `localhost` with its port. A name
//!   can be made to lead here after a page was loaded under it (DNS rebinding).
//! - What presses a button must come from the page itself, where a browser says where it comes from: `Origin` is the page's own, and
//!   `Sec-Fetch-Site` is `same-origin` (Fetch standard, section 3.2; Fetch Metadata, section 2.3). Tools send neither.

use std::net::SocketAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue};

/// Whether the page is called by its own name.
pub(super) fn is_called_by_its_name(headers: &HeaderMap, page: SocketAddr) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    hosts.next().is_none() && host.is_some_and(|host| names(page).iter().any(|name| name == host))
}

/// Whether the page itself presses a button, or a tool does.
pub(super) fn may_press(headers: &HeaderMap, page: SocketAddr) -> bool {
    let all = |name: &str, is_own: &dyn Fn(&HeaderValue) -> bool| headers.get_all(name).iter().all(is_own);
    is_called_by_its_name(headers, page)
        && all("sec-fetch-site", &|site| site == "same-origin")
        && all(ORIGIN.as_str(), &|origin| {
            let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            host.is_some_and(|host| headers.get(HOST).is_some_and(|called| called == host))
        })
}

fn names(page: SocketAddr) -> [String; 2] {
    [page.to_string(), format!("localhost:{}", page.port())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(fields: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        may_press(&headers, "127.0.0.1:4000".parse().unwrap())
    }

    #[test]
    fn the_page_and_tools_may() {
        let host = ("host", "127.0.0.1:4000");
        assert!(may(&[host]));
        assert!(may(&[host, ("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "same-origin")]));
        assert!(may(&[("host", "localhost:4000"), ("origin", "http://localhost:4000")]));
    }

    #[test]
    fn other_sites_may_not() {
        let host = ("host", "127.0.0.1:4000");
        for fields in [
            &[][..],
            &[("host", "evil.example:4000")],
            &[("host", "127.0.0.1:4001")],
            &[("host", "127.0.0.1:4000.evil.example")],
            &[host, ("host", "evil.example")],
            &[host, ("origin", "http://evil.example")],
            &[host, ("origin", "null")],
            &[host, ("origin", "https://127.0.0.1:4000")],
            &[host, ("origin", "http://localhost:4000")],
            &[host, ("origin", "http://127.0.0.1:4000"), ("origin", "http://evil.example")],
            &[host, ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site")],
            &[
                ("host", "evil.example:4000"),
                ("origin", "http://evil.example:4000"),
                ("sec-fetch-site", "same-origin"),
            ],
        ] {
            assert!(!may(fields), "{fields:?}");
        }
    }
}
