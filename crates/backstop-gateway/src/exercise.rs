//! What is said of alternatives that were tried.

use backstop_engine::exercise::Turned;
use backstop_engine::policy::Route;

/// One line for each alternative that turned: broken, or whole again.
pub(crate) fn tell(route: &Route, turned: &[Turned]) {
    for &Turned { tried, is_broken, reason } in turned {
        let alternative = tried.source(route).token();
        let name = &*route.name;
        if is_broken {
            tracing::warn!(
                target: "backstop::exercise",
                route = name,
                alternative,
                reason,
                "an alternative is broken: three exercises in a row failed, and in an outage it would not answer"
            );
        } else {
            tracing::info!(
                target: "backstop::exercise",
                route = name,
                alternative,
                "an alternative works again: three exercises in a row were good"
            );
        }
    }
}
