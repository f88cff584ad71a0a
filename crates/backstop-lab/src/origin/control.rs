//! The control face: drives an origin from another process, over HTTP on a second port.
//!
//! | request | does |
//! |---|---|
//! | `POST /control/on` with a [`RuleSpec`] | sets a rule |
//! | `POST /control/default` with a [`BehaviourSpec`] | sets the default behaviour |
//! | `POST /control/reset`, `/control/forget` | [`Origin::reset`], [`Origin::forget`] |
//! | `POST /control/refuse`, `/control/accept_again`, `/control/fill_backlog` | reachability |
//! | `POST /control/close_connections`, `/control/reset_connections` | ends what is open |
//! | `GET /control/stats` | the counters |
//!
//! Answers are JSON: 200, 400 with the `error`, 404, or 500 when the origin could not do it. The face is itself an
//! origin whose behaviour is computed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, Behaviour, BehaviourSpec, Origin, Request, RuleSpec};

/// What the control face of `origin` does. Does not keep `origin` running.
pub(crate) fn behaviour(origin: &Origin) -> Behaviour {
    let origin = origin.downgrade();
    Behaviour::from_async_fn(move |request: Arc<Request>| {
        let origin = origin.clone();
        async move {
            let (status, body) = match origin.upgrade() {
                Some(origin) => obey(&origin, &request).await,
                None => (500, json!({"error": "the origin is gone"})),
            };
            let answer = Answer::new(status).header("Content-Type", "application/json");
            answer.body(body.to_string()).into()
        }
    })
}

async fn obey(origin: &Origin, request: &Request) -> (u16, Value) {
    let done = match (request.method.as_str(), request.path()) {
        ("GET", "/control/stats") => return (200, json!(origin.stats())),
        ("POST", "/control/on") => return set_rule(origin, &request.body),
        ("POST", "/control/default") => return set_default(origin, &request.body),
        ("POST", "/control/refuse") => origin.refuse().await,
        ("POST", "/control/accept_again") => origin.accept_again().await,
        ("POST", "/control/fill_backlog") => origin.fill_backlog().await,
        ("POST", "/control/reset") => {
            origin.reset();
            Ok(())
        }
        ("POST", "/control/forget") => {
            origin.forget();
            Ok(())
        }
        ("POST", "/control/close_connections") => {
            origin.close_connections();
            Ok(())
        }
        ("POST", "/control/reset_connections") => {
            origin.reset_connections();
            Ok(())
        }
        _ => return (404, json!({"error": "no such control"})),
    };
    match done {
        Ok(()) => (200, json!({"done": true})),
        Err(error) => (500, json!({"error": error.to_string()})),
    }
}

fn set_rule(origin: &Origin, body: &[u8]) -> (u16, Value) {
    let rule: RuleSpec = match serde_json::from_slice(body) {
        Ok(rule) => rule,
        Err(error) => return refused(&error),
    };
    match (rule.matcher(), rule.behaviours()) {
        (Ok(matcher), Ok(mut behaviours)) if behaviours.len() == 1 => {
            if let Some(behaviour) = behaviours.pop() {
                origin.on(matcher, behaviour);
            }
        }
        (Ok(matcher), Ok(behaviours)) => origin.script(matcher, behaviours),
        (Err(error), _) | (_, Err(error)) => return refused(&error),
    }
    (200, json!({"done": true}))
}

fn set_default(origin: &Origin, body: &[u8]) -> (u16, Value) {
    let spec: BehaviourSpec = match serde_json::from_slice(body) {
        Ok(spec) => spec,
        Err(error) => return refused(&error),
    };
    match spec.behaviour() {
        Ok(behaviour) => {
            origin.default(behaviour);
            (200, json!({"done": true}))
        }
        Err(error) => refused(&error),
    }
}

fn refused(error: &dyn std::error::Error) -> (u16, Value) {
    (400, json!({"error": error.to_string()}))
}
