//! What no single value can tell: values against each other, and lints.
//!
//! Every check works on what could be read, so that one pass reports as much as possible; a check whose values are
//! missing says nothing.

mod addresses;
mod answers;
mod copies;
mod headers;
mod keys;
mod limits;
mod matching;
mod presence;
mod references;
mod room;
mod times;
mod unused;
mod view;

pub(crate) use answers::Answers;
pub(crate) use view::{DependencyView, RouteView, View};

use crate::read::Context;
use crate::shape::File;
use crate::source::FileSource;

/// Runs every check and gives back the answers prepared beforehand, one per route.
pub(crate) fn run(file: &File, files: &dyn FileSource, cx: &mut Context<'_>) -> Answers {
    let view = View::new(file);
    presence::check(&view, cx);
    addresses::check(&view, cx);
    references::check(&view, cx);
    matching::check(&view, cx);
    keys::check(&view, cx);
    times::check(&view, cx);
    headers::check(&view, cx);
    room::check(&view, cx);
    limits::check(&view, cx);
    copies::check(&view, cx);
    unused::check(&view, cx);
    answers::read(&view, files, cx)
}
