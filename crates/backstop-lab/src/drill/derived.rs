//! What a policy promises anyway, whatever fails: held in every drill.
//!
//! Each check is sound: it reckons with the earliest and latest moment that something can have happened, so that what it finds did
//! not hold. `age`, for one, takes for granted that a copy was read no earlier than its call reached the proxy and judged no
//! earlier than its request was sent.

mod access;
mod ages;
mod answers;
mod limits;
mod repeats;
mod returning;

use super::{Finding, View};

pub use ages::oldest;

/// Looks at everything that the policy promises.
#[must_use]
pub fn all(view: &View<'_>) -> Vec<Finding> {
    vec![
        answers::accepted(view),
        answers::own(view),
        answers::passes_through(view),
        ages::age(view),
        ages::keys(view),
        answers::deadline(view),
        limits::connections(view),
        limits::in_flight(view),
        limits::refused_at_once(view),
        limits::resources(view),
        repeats::writes_once(view),
        repeats::retries(view),
        access::authorized(view),
        access::denied(view),
        returning::recovered(view),
        returning::ramp(view),
    ]
}
