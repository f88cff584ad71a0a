//! Traces, in a build without them.

use std::time::Duration;

use backstop::authorize::Verdict;
use backstop::clock::Clock;
use backstop::upstream::CallError;
use backstop_engine::flow::Attempt;
use backstop_policy::TraceSettings;
use http::{Response, request};

use super::CannotTell;
use super::context::Context;
use super::queue::Counts;
use super::seen::Request;
use crate::stack::Thread;

/// Where spans go: nowhere.
pub(crate) enum Spans {}

impl Spans {
    pub(super) fn start(_: &TraceSettings, _: &str, _: &Clock) -> Result<Self, CannotTell> {
        Err(CannotTell::NoTraces)
    }

    pub(super) fn begin(&self, _: Option<&Context>, _: &Thread) -> Context {
        match *self {}
    }

    pub(super) fn answered(&self, _: &Context, _: Option<&Context>, _: &Request<'_>, _: Option<&str>) {
        match *self {}
    }

    pub(super) fn counts(&self) -> &Counts {
        match *self {}
    }

    pub(super) fn close(&self, _: Duration) -> bool {
        match *self {}
    }
}

/// A call that is told of to nobody.
pub(crate) struct Calling;

impl Calling {
    pub(crate) fn begin<B>(_: &Thread, _: &Attempt, _: &mut http::Request<B>) -> Self {
        Self
    }

    pub(crate) fn begin_asking(
        _: &Thread,
        _: Option<&Attempt>,
        _: &request::Parts,
    ) -> Option<(Self, request::Parts)> {
        None
    }

    pub(crate) fn was_told(self, _: &Verdict) {}

    pub(crate) fn ended<B, E>(self, _: Result<&Response<B>, &CallError<E>>) {}
}
