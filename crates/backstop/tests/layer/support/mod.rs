//! A shop whose catalog does what the test says, in time that only the test moves.

mod catalog;
mod gate;
mod reply;
mod shop;

use std::time::Duration;

use backstop::builder::{self, Builder};
use backstop::engine::failure::FailureKind;
use backstop::engine::policy::{Policy, PublicRead, RouteClass};
use http::{Request, Response};

pub(crate) use catalog::{Content, Does, Fault, Piece};
pub(crate) use gate::Gate;
pub(crate) use reply::{Pending, Reply};
pub(crate) use shop::{START, Shop, THIS_BOOT, classify};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const NS: Duration = Duration::from_nanos(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const MAX_AGE: Duration = Duration::from_secs(60);

/// Of the deadline of 300 ms, 1 % is kept for the reply and 1 % for the alternative: 3 ms each.
pub(crate) const DEADLINE: Duration = Duration::from_millis(300);
pub(crate) const ATTEMPT_END: Duration = Duration::from_millis(294);
/// Without an alternative only the reply's share is kept.
pub(crate) const DIRECT_ATTEMPT_END: Duration = Duration::from_millis(297);

pub(crate) const PRODUCT: &str = "/products/42";
pub(crate) const REFUSED: Does = Does::Fails(Some(FailureKind::Connect));

/// A product description: at most 60 s old, within 300 ms.
pub(crate) fn description() -> Builder {
    builder::public_read("description", DEADLINE).in_flight(200).max_age(MAX_AGE)
}

/// The same with its finer rules changed.
pub(crate) fn description_with(change: impl FnOnce(&mut PublicRead)) -> Policy {
    let mut policy = description().policy();
    if let RouteClass::PublicRead(read) = &mut policy.routes[0].class {
        change(read);
    }
    policy
}

/// A GET of the shop's host.
pub(crate) fn get(path: &str) -> Request<()> {
    request("GET", path, &[])
}

pub(crate) fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(path).header("host", "shop.example");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// An answer with these fields and this body, whole and at once.
pub(crate) fn answers(status: u16, fields: &[(&str, &str)], body: &'static str) -> Does {
    answers_in_pieces(status, fields, if body.is_empty() { vec![] } else { vec![Piece::Data(body)] })
}

pub(crate) fn answers_in_pieces(status: u16, fields: &[(&str, &str)], body: Vec<Piece>) -> Does {
    let mut answer = Response::builder().status(status);
    for (name, value) in fields {
        answer = answer.header(*name, *value);
    }
    Does::Answers(answer.body(body).unwrap())
}

/// 200 in plain text.
pub(crate) fn says(body: &'static str) -> Does {
    answers(200, &[("content-type", "text/plain")], body)
}

/// 200 in JSON.
pub(crate) fn says_json(body: &'static str) -> Does {
    answers(200, &[("content-type", "application/json")], body)
}

pub(crate) fn once_open(gate: &Gate, then: Does) -> Does {
    Does::OnceOpen(gate.clone(), Box::new(then))
}
