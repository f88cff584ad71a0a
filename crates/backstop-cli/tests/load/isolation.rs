//! An optional part that hangs takes nothing from the main reads.

use std::time::Duration;

use backstop_lab::load::{self, Kind, Sample};
use backstop_lab::origin::{Behaviour, Matcher, Origin};

use crate::support::shop::HOST;
use crate::support::{Gateway, Policy, products};
use crate::timeline::{Timeline, told};
use crate::town::product_reads;
use crate::{alone, times};

const PHASE: Duration = Duration::from_millis(1500);
/// Healthy and hanging in turn, so that the machine's own moods meet both.
fn phases() -> u32 {
    8 * times()
}

/// What was begun in the phase before.
const LEFT_OVER: Duration = Duration::from_millis(300);

fn policy(catalog: &Origin, recommender: &Origin) -> Policy {
    Policy::empty()
        .gateway("in_flight = 400")
        .dependency("catalog", catalog.addr(), "")
        .dependency("recommender", recommender.addr(), "connections = 8")
        .route("description.public_read", &Policy::description("in_flight = 200"))
        .route(
            "recommendations.optional",
            "match = \"GET /p/{id}/recommendations\"\ndependency = \"recommender\"\ndeadline = \"80ms\"\nin_flight = 20\notherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }",
        )
}

/// The 99th percentile of the main reads of every phase with this parity.
fn p99s(samples: &[Sample], parity: u32) -> Vec<Duration> {
    let of_phase = |phase: u32| {
        let (from, to) = (PHASE * phase + LEFT_OVER, PHASE * (phase + 1));
        let is_in = |sample: &&Sample| sample.kind == 0 && (from..to).contains(&sample.intended);
        let mut latencies: Vec<Duration> =
            samples.iter().filter(is_in).map(|sample| sample.latency).collect();
        latencies.sort_unstable();
        latencies[latencies.len() * 99 / 100]
    };
    let mut all: Vec<Duration> = (0..phases()).filter(|phase| phase % 2 == parity).map(of_phase).collect();
    all.sort_unstable();
    all
}

mod timing {
    use super::*;

    #[test]
    fn main_reads_are_as_fast_while_the_recommender_hangs_and_none_is_refused() {
        alone(async {
            let (catalog, recommender) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
            catalog.default(products("first"));
            let part = || Behaviour::json(r#"["1","2"]"#);
            recommender.default(part());
            let mut gateway = Gateway::start(&policy(&catalog, &recommender));
            HOST.clone_into(&mut gateway.host);
            let timeline = Timeline::new();
            let noting = std::sync::Arc::clone(&timeline);
            let plan = load::Plan::new(gateway.addr, 600.0, PHASE * phases())
                .kind(product_reads().weight(2))
                .kind(
                    Kind::get("/p/1/recommendations")
                        .check(|answer| answer.status() == 200 || answer.status() == 503),
                )
                .keep_samples(200_000)
                .on_sample(move |sample| noting.note(sample));
            let run = load::start(plan).unwrap();
            for phase in 0..phases() {
                timeline.until(PHASE * phase).await;
                let hangs = phase % 2 == 1;
                let behaviour = if hangs { part().delay(Duration::from_millis(250)) } else { part() };
                recommender.on(Matcher::any(), behaviour);
            }
            let summary = run.finish().await.unwrap();
            let (reads, parts) = (&summary.kinds[0].1, &summary.kinds[1].1);
            assert_eq!(reads.by_outcome.get("unmarked"), Some(&reads.offered), "{:?}", reads.by_outcome);
            assert_eq!((reads.failed, reads.excess, reads.wrong), (0, 0, 0));
            let left_out = parts.by_source.get("omitted").copied().unwrap_or(0);
            assert!(left_out > 100, "it hangs in half of the phases: {:?}", parts.by_outcome);

            let (healthy, hanging) = (p99s(&summary.samples, 0), p99s(&summary.samples, 1));
            let median = |all: &[Duration]| all[all.len() / 2];
            told(&format!(
                "{} reads, p99 healthy {healthy:?}, hanging {hanging:?}; parts {:?}",
                reads.answered, parts.by_outcome
            ));
            let most = median(&healthy) * 3 / 2 + Duration::from_millis(3);
            assert!(median(&hanging) <= most, "healthy {healthy:?}, hanging {hanging:?}");
        });
    }
}
