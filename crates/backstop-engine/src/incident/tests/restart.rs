//! Incidents across restarts and boots.

use std::time::Duration;

use crate::incident::{
    Baseline, Entry, Incidents, Lookups, Moment, NAMES_MAX, Named, Phase, Record, Saved, TOKENS_MAX, What,
};
use crate::time::{Mono, Wall};

use super::support::{BOOT_B, SECOND, World, normal, open, to_phase};

/// The process ends and another takes over after this time, in the same boot.
fn restart(world: &mut World, gap: Duration) {
    let saved = world.incidents.save();
    world.now.mono = world.now.mono.after(gap);
    world.now.wall = world.now.wall.after(gap);
    world.incidents = Incidents::restore(saved, world.now);
}

#[test]
fn what_was_saved_comes_back() {
    let mut world = World::new();
    let mut usual = normal(1000);
    usual.lookups = Some(Lookups { hits: 900, total: 1000 });
    world.quiet(100, &usual);
    world.open_and_close();
    world.quiet(298, &normal(100));
    world.tick(&normal(100));
    world.tick(&open());
    let before = world.incidents.save();
    assert!(before.current.is_some() && before.ended.len() == 1 && before.begun == 2);
    restart(&mut world, 3 * SECOND);
    let mut after = world.incidents.save();
    assert_eq!(after.baseline, before.baseline);
    assert_eq!((after.begun, &after.ended), (2, &before.ended));
    // The restart is noted; everything else is as it was.
    let current = after.current.as_mut().unwrap();
    let noted = current.timeline.first.pop().unwrap();
    assert_eq!(noted.what, What::Restart { missed: 3 * SECOND });
    assert_eq!(std::mem::take(&mut current.restarts), 1);
    assert_eq!(after.current, before.current);
}

/// 299 seconds of green before the restart are lost: nobody counted in between.
#[test]
fn an_incident_goes_on_and_its_five_minutes_begin_anew() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(298, &normal(100));
    restart(&mut world, SECOND);
    assert_eq!(world.phase(), Some(Phase::Observing));
    world.quiet(300, &normal(100));
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
    // Seconds 1 to 301, one that nobody counted, and 301 more.
    assert_eq!(world.last_ended().time_to_end(), Some(Duration::from_secs(602)));
    assert_eq!(world.last_ended().counts.normal, 100 * (300 + 301));
}

/// The breaker's own state is not kept: after a restart it is closed, and the record says so.
#[test]
fn a_breaker_that_is_closed_after_a_restart_is_noted() {
    let mut world = World::new();
    world.tick(&open());
    restart(&mut world, SECOND);
    world.tick(&normal(100));
    let record = world.record();
    assert_eq!(record.phase, Phase::Recovering);
    let closed = record.timeline.entries().any(|entry| {
        matches!(&entry.what, What::Dependency { state, .. } if *state == crate::incident::DependencyState::Closed)
    });
    assert!(closed);
}

/// Another boot: its clock starts at zero again. The date says that two minutes passed, and later that it was set back
/// behind the beginning; then no time passed at all.
#[test]
fn the_boot_clock_of_another_boot_is_compared_with_nothing() {
    for (wall_step, expected) in [(120_i64, 120_u64), (-7200, 0)] {
        let mut world = World::new();
        world.open_and_close();
        let saved = world.incidents.save();
        let began = saved.current.as_ref().unwrap().began;
        let wall = world.now.wall.as_unix_ns() + wall_step * 1_000_000_000;
        world.now.wall = Wall::from_unix_ns(wall);
        (world.now.mono, world.now.boot) = (Mono::from_ns(5), BOOT_B);
        world.incidents = Incidents::restore(saved, world.now);
        let noted = world.record().timeline.entries().next_back().unwrap();
        assert_eq!(noted.what, What::Restart { missed: Duration::from_secs(expected) });
        for _ in 0..300 {
            assert_eq!(world.incidents.tick(world.now, &normal(100), &world.names), None);
            world.now.mono = world.now.mono.after(SECOND);
            world.now.wall = world.now.wall.after(SECOND);
        }
        assert_eq!(to_phase(world.incidents.tick(world.now, &normal(100), &world.names)), Some(Phase::Ended));
        let record = world.last_ended();
        assert_eq!(record.began, began);
        // Second 3 less second 1, the gap, five minutes; or nothing, because the end lies before the beginning.
        let lasted = if wall_step > 0 { 2 + 120 + 300 } else { 0 };
        assert_eq!(record.time_to_end(), Some(Duration::from_secs(lasted)));
    }
}

/// A boot clock that seems to run backwards, or another boot in one process, is a gap and no evidence.
#[test]
fn a_clock_that_runs_back_begins_the_five_minutes_anew() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(290, &normal(100));
    world.now.mono = world.now.mono.before(Duration::from_secs(900));
    world.quiet(300, &normal(100));
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
    let mut world = World::new();
    world.open_and_close();
    world.quiet(290, &normal(100));
    world.now.boot = BOOT_B;
    world.quiet(300, &normal(100));
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
}

#[test]
fn a_number_never_comes_again() {
    let mut world = World::new();
    world.tick(&open());
    let mut saved = world.incidents.save();
    // A file without the number still has the incidents.
    saved.begun = 0;
    // Either sign of an end is enough.
    let mut over = saved.clone();
    over.current.as_mut().unwrap().ended = Some(Moment::default());
    assert_eq!(Incidents::restore(over, world.now).current(), None);
    saved.current.as_mut().unwrap().phase = Phase::Ended;
    let mut incidents = Incidents::restore(saved, world.now);
    assert_eq!((incidents.current(), incidents.ended().len()), (None, 1));
    incidents.tick(world.now, &open(), &world.names);
    assert!(incidents.current().unwrap().id.ends_with("-2"));
}

#[test]
fn what_comes_from_a_file_is_cut_to_the_bounds() {
    let mut world = World::new();
    world.tick(&open());
    let mut record: Record = world.record().clone();
    let named = |count: usize| (0..count).map(|n| Named { name: n.to_string().into(), value: 1 }).collect();
    record.reasons = named(1000);
    record.signals = named(1000);
    record.functions =
        (0..1000).map(|n| Named { name: n.to_string().into(), value: Default::default() }).collect();
    let at = Moment::default();
    let what = What::Gap { missed: SECOND };
    record.timeline.first = vec![Entry { at, until: at, times: 1, what: what.clone() }; 1000];
    record.timeline.last = vec![Entry { at, until: at, times: 1, what }; 1000];
    let baseline = Baseline { requests: f64::NAN, ..Baseline::default() };
    let saved =
        Saved { current: Some(record.clone()), ended: vec![record; 100], baseline, ..Saved::default() };
    let incidents = Incidents::restore(saved, world.now);
    let kept: Vec<&Record> = incidents.ended().chain(incidents.current()).collect();
    assert_eq!(kept.len(), 33);
    for record in kept {
        assert_eq!(record.reasons.len(), TOKENS_MAX + 1);
        assert_eq!(record.reasons.iter().map(|named| named.value).sum::<u64>(), 1000);
        assert_eq!(record.functions.len(), NAMES_MAX + 1);
        assert_eq!((record.timeline.first.len(), record.timeline.last.len()), (100, 100));
        // One more line for the restart of the current one.
        assert!((1800..=1801).contains(&record.timeline.dropped));
    }
    assert_eq!(incidents.baseline().fallback_ratio(), 0.0);
}

/// What an earlier process wrote, of which the last incident has ended or not, and what this one has seen before it could
/// read that.
fn two_processes(has_ended: bool) -> (Saved, World) {
    let mut earlier = World::new();
    earlier.quiet(100, &normal(1000));
    earlier.open_and_close();
    earlier.quiet(298, &normal(100));
    earlier.tick(&normal(100));
    if !has_ended {
        earlier.tick(&open());
    }
    let mut world = World::new();
    world.now = earlier.now;
    (earlier.incidents.save(), world)
}

/// Second 403 is the last of the earlier process, which saw the first incident begin in second 101.
#[test]
fn what_is_read_late_comes_before_what_happened_meanwhile() {
    let (saved, mut world) = two_processes(true);
    assert_eq!((saved.begun, saved.ended.len(), saved.current.is_some()), (1, 1, false));
    let (first, usual) = (saved.ended[0].clone(), saved.baseline);
    world.open_and_close();
    world.quiet(298, &normal(100));
    world.tick(&normal(100));
    world.tick(&open());
    let (second, third) = (world.last_ended().clone(), world.record().clone());
    assert!(second.id.ends_with("Z-1") && third.id.ends_with("Z-2"));
    world.incidents.take_up_late(saved, world.now);
    let after = world.incidents.save();
    assert_eq!((after.begun, after.ended.len(), &after.ended[0]), (3, 2, &first));
    assert!(after.ended[1].id.ends_with("Z-2") && after.ended[1].began == second.began);
    assert!(world.record().id.ends_with("Z-3") && world.record().began == third.began);
    assert_eq!(after.baseline.requests, usual.requests, "nothing was usual in the seconds since");
    // What goes on, goes on.
    world.tick(&normal(100));
    assert_eq!(world.record().counts.normal, 100);
}

#[test]
fn an_incident_that_is_read_late_goes_on_unless_there_is_a_later_one() {
    let (saved, mut world) = two_processes(false);
    world.quiet(1, &normal(100));
    world.incidents.take_up_late(saved, world.now);
    assert!(world.record().id.ends_with("Z-2") && world.record().restarts == 1);

    let (saved, mut world) = two_processes(false);
    let last_known = saved.last_tick;
    world.tick(&open());
    world.incidents.take_up_late(saved, world.now);
    assert!(world.record().id.ends_with("Z-3") && world.record().restarts == 0);
    let earlier = world.last_ended();
    assert!(earlier.id.ends_with("Z-2"));
    assert_eq!((earlier.phase, earlier.ended), (Phase::Ended, last_known));
}
