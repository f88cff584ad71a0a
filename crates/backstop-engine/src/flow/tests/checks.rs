//! The flows beside the counters: every number.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::failure::FailureKind;
use crate::health::tests::Seen;
use crate::health::{PerMille, Phase};
use crate::time::Mono;

use super::request::End;
use super::requests::Op;
use super::support::{MS, SECOND};

use super::world::World;

impl World {
    /// Breakers beside their references. What is measured elsewhere, and what chance decides, is taken over.
    pub(super) fn compare(&mut self) {
        let (now, now_ms) = (Mono::from_ns(self.now), self.now / MS);
        for (dependency, expected) in self.engine.dependencies().iter().zip(&mut self.model.dependencies) {
            let fallback = u64::from(dependency.rules.connections) * 20_000;
            let Some(reference) = &mut expected.health else { continue };
            let ms = |mono: Mono| mono.as_ns().div_ceil(MS);
            let phase = dependency.health.phase(now);
            reference.look(now_ms);
            if let Phase::Open { until } = phase {
                reference.take_over_spread(ms(until));
            }
            let seen = match phase {
                Phase::Closed => Seen::Closed,
                Phase::Open { until } => Seen::Open { until: ms(until) },
                Phase::HalfOpen => Seen::HalfOpen,
                Phase::Ramp { share: PerMille(share) } => Seen::Ramp { share: share.into() },
                Phase::Watch { until } => Seen::Watch { until: ms(until) },
                Phase::ForcedOpen => Seen::ForcedOpen,
                Phase::ForcedClosed => Seen::ForcedClosed,
            };
            assert_eq!(seen, reference.look(now_ms), "{}", dependency.rules.name);
            let generation = (dependency.health.generation(), dependency.health.totals().trips);
            assert_eq!(generation, (reference.generation, reference.trips));
            let saved = dependency.health.save(now);
            reference.p95_ns = saved.p95.as_nanos() as u64;
            reference.take_over_rate(if saved.rate_milli == 0 { fallback } else { saved.rate_milli });
        }
    }

    /// Every number, after every event.
    pub(super) fn check(&self) {
        assert_eq!(self.engine.process().in_flight(), self.model.in_flight);
        for (route, expected) in self.engine.routes().iter().zip(&self.model.routes) {
            let in_flight = (route.in_flight.in_flight(), route.fallback_lane.in_flight());
            assert_eq!(in_flight, (expected.in_flight, expected.lane));
            assert!(in_flight.1 <= route.rules.fallback_in_flight);
            let present = self.now / SECOND;
            let window: Vec<_> =
                expected.coverage.iter().filter(|(second, _)| present - second < 60).collect();
            let usable = window.iter().filter(|(_, usable)| *usable).count() as u64;
            let count = route.coverage.count(Mono::from_ns(self.now));
            assert_eq!((count.usable, count.total), (usable, window.len() as u64));
        }
        for ((dependency, expected), woken) in
            self.engine.dependencies().iter().zip(&self.model.dependencies).zip(&self.wake_ups)
        {
            let limit = &dependency.in_flight;
            let waiting: u32 = expected.waiting.iter().sum();
            assert_eq!((limit.in_flight(), limit.waiting()), (expected.in_flight, waiting));
            assert_eq!(woken.0.load(Ordering::Relaxed), expected.wake_ups);
            let calls = &dependency.tally;
            assert_eq!(
                [calls.attempts(), calls.answers(), calls.abandoned(), calls.late_results()],
                [expected.attempts, expected.answers, expected.abandoned, expected.late]
            );
            let retries = &dependency.retries;
            assert_eq!((retries.in_flight(), retries.spent()), (expected.retries, expected.retries_made));
            assert_eq!(retries.level_thousandths(), expected.saved * 100);
            let verified = expected.evidence.as_ref().map_or(0, |evidence| evidence.in_flight);
            assert_eq!(dependency.stand_in.in_flight(), verified);
        }
        for (resource, expected) in self.engine.resources().iter().zip(&self.model.resources) {
            assert_eq!(resource.in_use(), expected.in_use);
        }
    }

    /// Everybody leaves: nothing is in flight, and every request was counted exactly once.
    pub(super) fn end(mut self) {
        while !self.live.is_empty() {
            if self.live[0].decision.is_some() {
                self.settle(0, End::ClientLeaves, 0);
            } else {
                self.apply(&Op::Leave { slot: 0 });
            }
        }
        while !self.calls.is_empty() {
            self.apply(&Op::EndCall { slot: 0 });
        }
        self.check();
        assert_eq!(self.engine.process().in_flight(), 0);
        assert!(self.engine.resources().iter().all(|resource| resource.in_use() == 0));
        let mut requests = 0;
        for (route, expected) in self.engine.routes().iter().zip(&self.model.routes) {
            assert_eq!((route.in_flight.in_flight(), route.fallback_lane.in_flight()), (0, 0));
            let counts = route.tally.requests();
            requests += counts.iter().map(|count| count.count).sum::<u64>();
            let counted: BTreeMap<_, _> =
                counts.iter().map(|c| ((c.outcome.token(), c.source.token(), c.reason), c.count)).collect();
            assert_eq!(counted, expected.counted);
            assert_eq!(route.tally.ages().0.iter().sum::<u64>(), expected.ages);
        }
        assert_eq!(requests, self.begun, "each request once");
        for (dependency, expected) in self.engine.dependencies().iter().zip(&self.model.dependencies) {
            assert_eq!((dependency.in_flight.in_flight(), dependency.in_flight.waiting()), (0, 0));
            assert_eq!((dependency.retries.in_flight(), dependency.stand_in.in_flight()), (0, 0));
            let failures: BTreeMap<_, _> = FailureKind::TOKENS
                .into_iter()
                .zip(dependency.tally.failures())
                .filter(|(_, count)| *count > 0)
                .collect();
            assert_eq!(failures, expected.failures);
            let failed = failures.values().sum::<u64>();
            let ends = expected.answers + expected.abandoned + failed + expected.not_begun;
            assert_eq!(dependency.tally.attempts(), ends, "each call once");
        }
    }
}
