//! What one decision costs: nanoseconds (median of runs) and allocations.
//!
//! `cargo bench -p backstop-engine`. The clock is read around thousands of decisions, not within them, so its own cost
//! is apart. Compare runs on one machine only.
#![expect(clippy::expect_used, clippy::panic, reason = "a bench that cannot run has nothing to say")]

#[path = "../tests/common/decisions.rs"]
mod decisions;

use std::hint::black_box;

use decisions::{fallback_from_a_copy, full_route, normal, policy, refused_at_the_route};

/// Many short runs: on a busy machine most of them are not interrupted.
const RUNS: usize = 4001;
const DECISIONS_PER_RUN: u32 = 250;

/// Median nanoseconds and the number of allocations of one decision.
#[expect(clippy::disallowed_types, reason = "a bench measures real time")]
fn measure(mut decide: impl FnMut()) -> (f64, u64) {
    for _ in 0..100 * DECISIONS_PER_RUN {
        decide();
    }
    let mut runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let begin = std::time::Instant::now();
            for _ in 0..DECISIONS_PER_RUN {
                decide();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(DECISIONS_PER_RUN)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    let allocations = allocation_counter::measure(&mut decide).count_total;
    (runs.get(RUNS / 2).copied().unwrap_or_default(), allocations)
}

#[expect(clippy::print_stdout, clippy::disallowed_macros, reason = "a bench reports")]
fn report(name: &str, (ns, allocations): (f64, u64)) {
    println!("{name:<28} {ns:>8.1} ns {allocations:>4} allocations");
}

fn main() {
    let engine = policy();
    report("normal, public_read", measure(|| normal(black_box(&engine))));
    report("fallback from a copy", measure(|| fallback_from_a_copy(black_box(&engine))));
    let full = full_route(&engine);
    report("refusal at the route's limit", measure(|| refused_at_the_route(black_box(&engine))));
    drop(full);
}
