//! What the policy language has and this version cannot keep yet: it is read, checked and lowered like everything else, and
//! the whole file is refused at the end. This is the one place that refuses it.

use crate::check::View;
use crate::read::{Context, not_available};

/// The route classes that are refused. One that is taken off this list is accepted, and nothing else changes.
pub(crate) const CLASSES: &[&str] = &[];

/// What the reference says of each.
pub(crate) const ABOUT: &str =
    "Not available in this version: it is read and checked, and the whole policy is refused.";

/// Refuses every route of one of these classes.
pub(crate) fn refuse(view: &View<'_>, classes: &[&str], cx: &mut Context<'_>) {
    for route in view.routes().filter(|route| classes.contains(&route.class())) {
        let what = format!("the class `{}`", route.class());
        cx.report(not_available(route.entry.at.bytes.clone(), &what));
    }
}
