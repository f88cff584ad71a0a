//! What befalls the product services, and when.

use std::time::Duration;

/// One part of the incident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) title: &'static str,
    pub(super) product_service: State,
    pub(super) recommender: State,
    pub(super) lasts: Duration,
}

/// How a service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Works,
    Refuses,
    Hangs,
    SendsGarbage,
}

const fn phase(title: &'static str, product_service: State, recommender: State, seconds: u64) -> Phase {
    Phase { title, product_service, recommender, lasts: Duration::from_secs(seconds) }
}

/// The incident. The second phase outlasts the copies: they are served for exactly as long as the policy accepts.
pub(super) const PHASES: [Phase; 7] = [
    phase("everything works", State::Works, State::Works, 5),
    phase("the product service refuses connections", State::Refuses, State::Works, 9),
    phase("it works again", State::Works, State::Works, 4),
    phase("it accepts requests and never answers", State::Hangs, State::Works, 5),
    phase("it works again", State::Works, State::Works, 4),
    phase("it sends half JSON; the recommender hangs", State::SendsGarbage, State::Hangs, 5),
    phase("everything works again", State::Works, State::Works, 5),
];

/// The phase in which a moment lies, counted from the beginning; the last one for all that comes after.
pub(super) fn due_in(moment: Duration) -> usize {
    let mut end = Duration::ZERO;
    let over = PHASES.iter().take_while(|phase| {
        end += phase.lasts;
        end <= moment
    });
    over.count().min(PHASES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_lies_in_the_phase_that_begins_with_it() {
        let at = |seconds: f64| due_in(Duration::from_secs_f64(seconds));
        assert_eq!((at(0.0), at(4.999), at(5.0), at(13.999), at(14.0)), (0, 0, 1, 1, 2));
        assert_eq!((at(36.9), at(1000.0)), (6, 6));
    }

    /// Without a terminal the demo promises to be over within 45 s; the rest is starting and draining.
    #[test]
    fn the_incident_is_short() {
        assert!(PHASES.iter().map(|phase| phase.lasts).sum::<Duration>() <= Duration::from_secs(40));
    }
}
