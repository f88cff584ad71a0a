//! HTTP statuses.

use backstop_engine::failure::Failure;
use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Node, Shape, Value};

/// A final status: 200 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u16);

/// A status that a route may declare a failure of its dependency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredStatus(pub(crate) u16);

/// A status that may withdraw a copy: a redirect or an answer about the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoneStatus(pub(crate) u16);

impl Value for Status {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let DeValue::Integer(written) = node.get() else {
            cx.report(node.wrong_type("an HTTP status such as 404"));
            return None;
        };
        let status = u16::from_str_radix(written.as_str(), written.radix()).ok();
        let status = status.filter(|status| (200..600).contains(status));
        if status.is_none() {
            let message = format!("{written} is not a final HTTP status");
            cx.report(
                Finding::new(Code::Status, node.bytes(), message).help("statuses lie between 200 and 599"),
            );
        }
        status.map(Status)
    }

    fn shape() -> Shape {
        Shape::Integer { min: 200, max: 599 }
    }
}

impl Value for DeclaredStatus {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Status(status) = Status::read(node, cx)?;
        if Failure::never(status) {
            let message = format!("{status} is never a failure of the dependency");
            cx.report(Finding::new(Code::NeverFailure, node.bytes(), message).help(if status < 400 {
                "only 429 and 5xx can be declared"
            } else {
                "it is an answer about the request or its sender, and passes through unchanged: only 429 and 5xx can be declared"
            }));
            return None;
        }
        Some(DeclaredStatus(status))
    }

    fn shape() -> Shape {
        Shape::Integer { min: 429, max: 599 }
    }
}

impl Value for GoneStatus {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let Status(status) = Status::read(node, cx)?;
        let why = match status {
            200..=299 => "it says that the resource is there: a correct 200 takes the copy's place",
            304 => "it says that nothing has changed",
            429 | 500..=599 => {
                "it tells of the dependency, not of the resource: this is what the copy is for"
            }
            _ => return Some(GoneStatus(status)),
        };
        let message = format!("{status} never withdraws a copy");
        cx.report(Finding::new(Code::NeverGone, node.bytes(), message).help(why));
        None
    }

    fn shape() -> Shape {
        Shape::Integer { min: 300, max: 499 }
    }
}
