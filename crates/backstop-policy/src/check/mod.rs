//! What no single value can tell: values against each other, and lints.
//!
//! Every check works on what could be read, so that one pass reports as much as possible; a check whose values are
//! missing says nothing.

mod addresses;
mod alternatives;
mod answers;
mod authorizers;
mod breaker;
mod caches;
mod composed;
mod copies;
mod effects;
mod evidence;
mod headers;
mod keys;
mod limits;
mod matching;
mod modes;
mod presence;
mod recovery;
mod references;
mod resources;
mod retries;
mod room;
mod secrets;
mod share;
mod times;
mod tokens;
mod unused;
mod view;

pub(crate) use answers::{Answers, StandIn};
pub(crate) use evidence::{Evidence, Verified};
pub(crate) use secrets::Secrets;
pub(crate) use view::{AuthorizerView, DependencyView, ResourceView, RouteView, View};

use crate::read::Context;
use crate::shape::File;
use crate::source::FileSource;

/// What was read from other files, each with one entry per route.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The answers prepared beforehand.
    pub(crate) answers: Answers,
    /// What the alternatives may be used for.
    pub(crate) verified: Verified,
    /// Values that stand elsewhere.
    pub(crate) secrets: Secrets,
}

/// Runs every check and gives back what was read from other files.
pub(crate) fn run(file: &File, files: &dyn FileSource, cx: &mut Context<'_>) -> Checked {
    let view = View::new(file);
    presence::check(&view, cx);
    addresses::check(&view, cx);
    references::check(&view, cx);
    authorizers::check(&view, cx);
    tokens::check(&view, cx);
    matching::check(&view, cx);
    keys::check(&view, cx);
    composed::check(&view, cx);
    modes::check(&view, cx);
    times::check(&view, cx);
    headers::check(&view, cx);
    room::check(&view, cx);
    limits::check(&view, cx);
    copies::check(&view, cx);
    caches::check(&view, cx);
    effects::check(&view, cx);
    unused::check(&view, cx);
    resources::check(&view, cx);
    recovery::check(&view, cx);
    let verified = evidence::read(&view, files, cx);
    breaker::check(&view, &verified, cx);
    retries::check(&view, &verified, cx);
    alternatives::check(&view, &verified, cx);
    let secrets = secrets::read(&view, files, cx);
    Checked { answers: answers::read(&view, files, cx), verified, secrets }
}
