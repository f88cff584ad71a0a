//! What is shown to people: the page, its style and script, its model as JSON, and reports of incidents.
//!
//! A page of another site cannot read what this port answers, unless its own name is made to lead here after it was loaded. So what
//! is shown here is shown only to who calls the port by an address, as `localhost`, or by a name of one label, which no site has.
//! Browsers are told to load nothing, to let nobody frame it, and to believe the media type.

use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::{Admin, own, text, typed};
use crate::status;

const HTML: &str = "text/html; charset=utf-8";

/// The answer, if the path is one of these and it is only looked at.
pub(super) fn answer<B>(admin: &Admin, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let path = request.uri().path();
    let report = path.strip_prefix("/incidents/").and_then(|name| name.strip_suffix(".html"));
    let is_shown =
        matches!(path, "/" | "/status" | "/status.json" | "/status.css" | "/status.js") || report.is_some();
    if !is_shown {
        return None;
    }
    if !is_ours(request.headers()) {
        let why = "this page is shown under an address or as localhost, not under a name: a name can be made to lead \
                   here by anybody\n";
        return Some(guarded(text(StatusCode::MISDIRECTED_REQUEST, why.into()), status::POLICY));
    }
    Some(match (path, report) {
        (_, Some(id)) => guarded(incident(admin, id), &status::REPORT_POLICY),
        ("/status.json", _) => guarded(model(admin), status::POLICY),
        ("/status.css", _) => {
            guarded(typed(StatusCode::OK, "text/css; charset=utf-8", status::STYLE.clone()), status::POLICY)
        }
        ("/status.js", _) => guarded(
            typed(StatusCode::OK, "text/javascript; charset=utf-8", status::SCRIPT.to_owned()),
            status::POLICY,
        ),
        _ => guarded(html(status::page(admin)), status::POLICY),
    })
}

fn model(admin: &Admin) -> Response<Full<Bytes>> {
    match serde_json::to_string_pretty(&status::view(admin)) {
        Ok(text) => typed(StatusCode::OK, "application/json", text + "\n"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write it down: {error}\n")),
    }
}

fn incident(admin: &Admin, id: &str) -> Response<Full<Bytes>> {
    let report = |record: &_, looked: &_| status::report(&admin.shared.name, record, looked);
    match admin.state.book.with(id, report) {
        Some(report) => html(report),
        None => text(StatusCode::NOT_FOUND, "there is no such incident, or not any more\n".into()),
    }
}

fn html(page: Result<String, askama::Error>) -> Response<Full<Bytes>> {
    match page {
        Ok(page) => typed(StatusCode::OK, HTML, page),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the page: {error}\n")),
    }
}

/// Whether the port is called by what no other site can be called. Every browser names a host; who names none is no browser.
fn is_ours(headers: &HeaderMap) -> bool {
    let has_one_label = |host: &str| {
        let name = host.split(':').next().unwrap_or_default();
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_ours = |host: &HeaderValue| {
        host.to_str().is_ok_and(|host| own::cannot_be_led_elsewhere(host) || has_one_label(host))
    };
    headers.get_all(HOST).iter().all(is_ours)
}

fn guarded(mut response: Response<Full<Bytes>>, policy: &str) -> Response<Full<Bytes>> {
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_only_to_who_calls_it_by_what_no_site_is_called() {
        let of = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_str(host).unwrap());
            }
            is_ours(&headers)
        };
        assert!(of(&[]), "no browser");
        for host in ["127.0.0.1:9901", "10.0.0.7", "[::1]:9901", "localhost:9901", "gateway:9901"] {
            assert!(of(&[host]), "{host}");
        }
        for hosts in [
            &["status.evil.example:9901"][..],
            &["localhost.evil.example"],
            &["127.0.0.1.evil.example"],
            &["evil.example.", "127.0.0.1"],
            &["127.0.0.1:9901", "evil.example"],
            &[""],
        ] {
            assert!(!of(hosts), "{hosts:?}");
        }
    }
}
