//! What the results of one tick come to.
//!
//! A percentile needs no list: the 95th is within a bound exactly if at most a twentieth of the answers took longer.
//! One bad result out of few is not a trend: below two, nothing is red, it only holds.

use super::rules::{Band, PerMille};
use super::tally::Results;

/// A verdict, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Light {
    Green,
    /// Hold.
    Amber,
    Red,
}

const RED_FROM: u64 = 2;
const TWENTIETH: PerMille = PerMille(50);

/// The verdict on errors and answering times.
pub(super) fn light(results: Results, green: &Band, red: &Band) -> Light {
    let calls = results.calls;
    let errors = worse(
        green.errors.is_exceeded(results.failures, calls),
        red.errors.is_exceeded(results.failures, calls) && results.failures >= RED_FROM,
    );
    let late = worse(
        TWENTIETH.is_exceeded(results.over_green, calls),
        TWENTIETH.is_exceeded(results.over_red, calls) && results.over_red >= RED_FROM,
    );
    errors.max(late)
}

fn worse(amber: bool, red: bool) -> Light {
    match (amber, red) {
        (_, true) => Light::Red,
        (true, false) => Light::Amber,
        (false, false) => Light::Green,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::RecoveryRules;

    /// By hand, with 1 % and 5 % of errors and a twentieth of late answers.
    #[test]
    fn results_are_told_apart_at_their_bounds() {
        let rules = RecoveryRules::default();
        let judge = |calls, failures, over_green, over_red| {
            light(Results { calls, failures, over_green, over_red }, &rules.green, &rules.red)
        };
        assert_eq!(judge(100, 1, 0, 0), Light::Green);
        assert_eq!(judge(100, 2, 0, 0), Light::Amber);
        assert_eq!(judge(100, 5, 0, 0), Light::Amber);
        assert_eq!(judge(100, 6, 0, 0), Light::Red);
        assert_eq!(judge(100, 0, 5, 5), Light::Green);
        assert_eq!(judge(100, 0, 6, 5), Light::Amber);
        assert_eq!(judge(100, 0, 6, 6), Light::Red);
        assert_eq!(judge(5, 1, 0, 0), Light::Amber, "one bad result is not red");
        assert_eq!(judge(5, 0, 1, 1), Light::Amber);
        assert_eq!(judge(5, 2, 0, 0), Light::Red);
        assert_eq!(judge(5, 0, 2, 2), Light::Red);
        assert_eq!(judge(5, 0, 0, 0), Light::Green);
    }
}
