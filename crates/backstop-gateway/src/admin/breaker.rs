//! `/dependencies/NAME/breaker`: what holds a dependency's breaker, and an operator's order.
//!
//! `GET` shows it. `POST` holds it open or closed, or releases it:
//!
//! ```json
//! { "state": "open", "reason": "the catalog is being moved" }
//! ```
//! `state` is `open`, `closed` or `release`; the first two need a `reason`. The answer shows the phase before and after,
//! and whether the order survives a restart.

use std::time::Duration;

use backstop_engine::health::Forced;
use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};

use super::{Admin, HEAD_TIME, content, own};
use crate::breakers::{self, Changed, Order};
use crate::state::json::moment;

/// Largest body.
const BODY_MAX: usize = 4096;
/// Longest reason, in characters.
const REASON_MAX: usize = 500;
/// How long the disk's word is waited for.
const DISK_TIME: Duration = Duration::from_secs(1);

/// The dependency that a path names, if it is one of these.
pub(super) fn named(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/dependencies/")?.strip_suffix("/breaker")?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

pub(super) async fn answer(admin: &Admin, name: &str, request: Request<Incoming>) -> Response<Full<Bytes>> {
    match *request.method() {
        Method::GET | Method::HEAD => show(admin, name),
        Method::POST => order(admin, name, request).await.unwrap_or_else(|refused| refused),
        _ => {
            let mut response =
                refused(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered here");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            response
        }
    }
}

fn show(admin: &Admin, name: &str) -> Response<Full<Bytes>> {
    let Some((phase, held)) = admin.state.breakers.look(name) else { return unknown(name) };
    let held = held
        .map(|held| json!({ "by": held.by.token(), "reason": &*held.reason, "since": moment(&held.since) }));
    let body = json!({ "dependency": name, "phase": breakers::name(phase), "held": held });
    super::json(StatusCode::OK, &body)
}

async fn order(
    admin: &Admin,
    name: &str,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Response<Full<Bytes>>> {
    own::check(request.headers()).map_err(|(status, why)| refused(status, why))?;
    let body = content::read(request.into_body(), BODY_MAX, HEAD_TIME).await;
    let body = body.map_err(|(status, why)| refused(status, &why))?;
    let wanted = parse(&body).map_err(|why| refused(StatusCode::BAD_REQUEST, &why))?;
    let reason = match &wanted {
        Order::Hold { reason, .. } => Some(reason.clone()),
        Order::Release => None,
    };
    let Some(Changed { before, after, saved }) = admin.state.breakers.order(name, wanted) else {
        return Err(unknown(name));
    };
    let saved = match saved {
        Some(saved) => tokio::time::timeout(DISK_TIME, saved).await.is_ok_and(|told| told == Ok(true)),
        None => false,
    };
    let body = json!({
        "dependency": name,
        "before": breakers::name(before),
        "after": breakers::name(after),
        "reason": reason.as_deref(),
        "survives_restart": saved,
    });
    Ok(super::json(StatusCode::OK, &body))
}

/// An order, or what is wrong with it.
fn parse(body: &[u8]) -> Result<Order, String> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    let Value::Object(fields) = value else { return Err("the body is no JSON object".into()) };
    if let Some(other) = fields.keys().find(|key| !matches!(key.as_str(), "state" | "reason")) {
        return Err(format!("`{}` is not known here: there are `state` and `reason`", other.escape_debug()));
    }
    let reason = reason(&fields)?;
    let hold = |at| match reason.clone() {
        Some(reason) => Ok(Order::Hold { at, reason }),
        None => Err("`reason` is missing: whoever finds the breaker held wants to know why".to_owned()),
    };
    match fields.get("state").and_then(Value::as_str) {
        Some("open") => hold(Forced::Open),
        Some("closed") => hold(Forced::Closed),
        Some("release") => Ok(Order::Release),
        _ => Err("`state` is one of \"open\", \"closed\" and \"release\"".into()),
    }
}

fn reason(fields: &Map<String, Value>) -> Result<Option<Box<str>>, String> {
    let Some(value) = fields.get("reason") else { return Ok(None) };
    let text = value.as_str().map(str::trim).ok_or("`reason` is a text")?;
    if text.is_empty() {
        return Ok(None);
    }
    if text.chars().count() > REASON_MAX || text.chars().any(char::is_control) {
        return Err(format!("`reason` is one line of at most {REASON_MAX} characters"));
    }
    Ok(Some(text.into()))
}

fn unknown(name: &str) -> Response<Full<Bytes>> {
    refused(StatusCode::NOT_FOUND, &format!("there is no dependency `{name}`"))
}

fn refused(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    super::json(status, &json!({ "error": why }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_one_dependency() {
        assert_eq!(named("/dependencies/catalog.es-1/breaker"), Some("catalog.es-1"));
        for other in [
            "/dependencies//breaker",
            "/dependencies/a/b/breaker",
            "/dependencies/breaker",
            "/dependencies/a/breaker/",
            "/dependencies/a",
            "/x/dependencies/a/breaker",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn an_order_is_whole_or_refused() {
        let hold = |at, reason: &str| Ok(Order::Hold { at, reason: reason.into() });
        let order = |body: &str| parse(body.as_bytes());
        assert_eq!(order(r#"{"state":"open","reason":" moved "}"#), hold(Forced::Open, "moved"));
        assert_eq!(order(r#"{"reason":"r","state":"closed"}"#), hold(Forced::Closed, "r"));
        assert_eq!(order(r#"{"state":"release"}"#), Ok(Order::Release));
        assert_eq!(order(r#"{"state":"release","reason":"back"}"#), Ok(Order::Release));
        let longest = "ñ".repeat(REASON_MAX);
        assert_eq!(
            order(&format!(r#"{{"state":"open","reason":"{longest}"}}"#)),
            hold(Forced::Open, &longest)
        );
        for refused in [
            "",
            "{",
            "[]",
            r#""open""#,
            "{}",
            r#"{"state":"open"}"#,
            r#"{"state":"closed","reason":"  "}"#,
            r#"{"state":"half_open","reason":"r"}"#,
            r#"{"state":1,"reason":"r"}"#,
            r#"{"state":"open","reason":1}"#,
            r#"{"state":"open","reason":"r","until":"1h"}"#,
            r#"{"state":"open","reason":"two\nlines"}"#,
            r#"{"state":"open","reason":"r"} and more"#,
            &format!(r#"{{"state":"open","reason":"{longest}x"}}"#),
        ] {
            assert!(order(refused).is_err(), "{refused}");
        }
    }
}
