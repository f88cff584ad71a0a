//! From a request to what happens and what is answered.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task;

use crate::origin::{Answer, Behaviour, CutAt, Request, Then};

use super::{
    StatusFault,
    book::{BY_KEY, Standing, key_of},
    fault::{Fault, Happens, Reply, When},
    handle::Desk,
    key,
};

/// Amounts that are refused, each with the status of its number.
const REFUSED: std::ops::RangeInclusive<u64> = 400..=499;
/// The one of them that is declined, which is remembered.
const DECLINED: u64 = 402;

/// What the service does with a request.
pub(super) async fn serve(desk: Arc<Desk>, request: Arc<Request>) -> Behaviour {
    let path = request.path();
    match (request.method.as_str(), path.strip_prefix(BY_KEY)) {
        ("GET", Some(segment)) => status(&desk, &key::from_path(segment)).await,
        ("POST", None) if path == "/payments" => pay(desk, &request).await,
        (_, None) if path != "/payments" => error(404, "not_found").into(),
        _ => error(405, "method_not_allowed").into(),
    }
}

async fn pay(desk: Arc<Desk>, request: &Request) -> Behaviour {
    let Some(key) = key_of(request) else { return error(400, "missing_key").into() };
    let sent: Option<Value> = serde_json::from_slice(&request.body).ok();
    let Some(amount) = sent.and_then(|sent| sent.get("amount")?.as_u64()) else {
        return error(400, "invalid_request").into();
    };
    let fault = desk.fault(&key).unwrap_or_else(|| Fault::late(When::Now));
    let Some(usual) = execute(desk, &fault, key, amount).await else {
        return error(500, "log_failed").into();
    };
    fault.reply_when.comes().await;
    let half = usual.to_string().len() / 2;
    let status = match usual["status"].as_str() {
        Some("processing") => 202,
        Some("succeeded") => 201,
        _ => u16::try_from(amount).unwrap_or(400),
    };
    let made = answer(status, &usual);
    let usual = match usual["id"].as_str() {
        Some(id) => made.header("Location", &format!("/payments/{id}")),
        None => made,
    };
    match fault.reply {
        Reply::Usual | Reply::Processing => usual.into(),
        Reply::Lost(then) => end(then),
        Reply::Status(status) => Behaviour::status(status),
        Reply::HalfHead => Behaviour::half_head(201),
        Reply::Truncated(then) => usual.cut(CutAt::Body(half), then).into(),
        Reply::HtmlPage => Behaviour::html_200(),
        Reply::Drip(interval) => usual.drip(1, interval).into(),
    }
}

/// Makes the payment happen as the fault says. What is usually answered then; `None` when the disk failed.
async fn execute(desk: Arc<Desk>, fault: &Fault, key: String, amount: u64) -> Option<Value> {
    if REFUSED.contains(&amount) {
        if amount != DECLINED {
            return Some(json!({"error": {"code": "invalid_request"}}));
        }
        desk.change(|book| book.decline(&key, amount));
        return Some(payment(None, "declined", &key, amount));
    }
    let (when, is_awaited) = match &fault.happens {
        Happens::Never => return Some(payment(None, "succeeded", &key, amount)),
        Happens::First(when) => (when.clone(), true),
        Happens::Beside(when) => (when.clone(), false),
    };
    if fault.is_processing {
        desk.change(|book| book.process(&key, amount));
    }
    let paid = key.clone();
    // A task of its own: what has begun goes on when the connection ends.
    let happening = task::spawn(async move {
        when.comes().await;
        task::spawn_blocking(move || desk.change(|book| book.execute(&paid, amount))).await
    });
    if !is_awaited {
        return Some(payment(None, "processing", &key, amount));
    }
    let effect = happening.await.ok()?.ok()?.ok()?;
    Some(payment(Some(effect.sequence), "succeeded", &key, amount))
}

async fn status(desk: &Desk, key: &str) -> Behaviour {
    let Some(fault) = desk.status_fault(key) else { return known(desk, key, true).into() };
    match fault {
        StatusFault::Status(status) => Behaviour::status(status),
        StatusFault::HtmlPage => Behaviour::html_200(),
        StatusFault::Lost(then) => end(then),
        StatusFault::Truncated(then) => known(desk, key, true).cut(CutAt::Body(7), then).into(),
        StatusFault::OtherAmount => {
            let amount = match desk.standing(key, true) {
                Some(Standing::Succeeded { amount, .. } | Standing::Processing { amount }) => amount,
                _ => 0,
            };
            answer(200, &payment(Some(1), "succeeded", key, amount + 1)).into()
        }
        StatusFault::OtherOperation => {
            answer(200, &payment(Some(1), "succeeded", &format!("not-{key}"), 1)).into()
        }
        StatusFault::BareNotFound => {
            Answer::new(404).header("Content-Type", "text/plain").body("404 page not found\n").into()
        }
        StatusFault::Behind => known(desk, key, false).into(),
        StatusFault::Held(when) => {
            when.comes().await;
            known(desk, key, true).into()
        }
        StatusFault::Drip(interval) => known(desk, key, true).drip(1, interval).into(),
    }
}

fn known(desk: &Desk, key: &str, sees_effects: bool) -> Answer {
    let Some(standing) = desk.standing(key, sees_effects) else { return error(404, "resource_missing") };
    let shown = match standing {
        Standing::Succeeded { sequence, amount } => payment(Some(sequence), "succeeded", key, amount),
        Standing::Processing { amount } => payment(None, "processing", key, amount),
        Standing::Declined { amount } => payment(None, "declined", key, amount),
    };
    answer(200, &shown)
}

fn payment(sequence: Option<u64>, status: &str, key: &str, amount: u64) -> Value {
    let id = sequence.map(|sequence| format!("pay_{sequence}"));
    json!({"id": id, "status": status, "operation_id": key, "amount": amount})
}

fn error(status: u16, code: &str) -> Answer {
    answer(status, &json!({"error": {"code": code}}))
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer::new(status).header("Content-Type", "application/json").body(body.to_string())
}

fn end(then: Then) -> Behaviour {
    Behaviour::raw("", then)
}
