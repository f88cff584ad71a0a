//! What each class may take, who waits behind whom, and who is told of a free place.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::ClassShare::{Effect, Guarded, Optional, Read};
use super::*;

fn newcomer(limit: &Arc<Limit>, class: ClassShare) -> Result<Permit, NoPlace> {
    limit.try_acquire_as(class, Turn::Newcomer, Excess::Refuse)
}

fn is_given(limit: &Arc<Limit>, class: ClassShare) -> bool {
    newcomer(limit, class).is_ok()
}

/// Takes as many as there are.
fn fill(limit: &Arc<Limit>, class: ClassShare) -> Vec<Permit> {
    std::iter::from_fn(|| newcomer(limit, class).ok()).collect()
}

/// As many as somebody else holds, whatever its class.
fn hold(limit: &Arc<Limit>, count: usize) -> Vec<Permit> {
    (0..count).map(|_| newcomer(limit, Effect).unwrap()).collect()
}

/// By hand: how many of each class an empty limit takes, for the smallest limits and for 20: 60 % of 20 are 12, less than
/// that is 11; 85 % are 17 and 16; 95 % are 19 and 18.
#[test]
fn an_empty_limit_takes_so_many_of_each_class_and_at_least_one() {
    for (places, taken) in [(1, [1, 1, 1, 1]), (2, [1, 1, 1, 2]), (3, [1, 2, 2, 3]), (20, [11, 16, 18, 20])] {
        for (class, taken) in ClassShare::ALL.into_iter().zip(taken) {
            let limit = Arc::new(Limit::new(places));
            assert_eq!(fill(&limit, class).len(), taken, "{class:?} of {places}");
        }
    }
}

/// One class after the other takes all that it can: 11, then up to 16, 18 and 20.
#[test]
fn what_matters_less_never_takes_the_last_places() {
    let limit = Arc::new(Limit::new(20));
    let mut held = Vec::new();
    for (class, more) in [(Optional, 11), (Read, 5), (Guarded, 2), (Effect, 2)] {
        let taken = fill(&limit, class);
        assert_eq!(taken.len(), more, "{class:?}");
        held.extend(taken);
    }
    assert_eq!(newcomer(&limit, Effect).unwrap_err(), NoPlace::Full);
    held.truncate(18);
    assert_eq!(newcomer(&limit, Guarded).unwrap_err(), NoPlace::Kept, "two are free, and kept for effects");
    assert_eq!(newcomer(&limit, Optional).unwrap_err(), NoPlace::Kept);
    assert!(is_given(&limit, Effect));
    // Four as each class filled its share, the first three of them with places free; and the three above.
    assert_eq!((limit.refused(), limit.kept()), (7, 5));
}

/// Counted only: given in any case, and what would have refused is told.
#[test]
fn a_share_that_is_only_counted_is_given_and_named() {
    let limit = Arc::new(Limit::new(3));
    let count = || limit.take_as(Optional, Turn::Newcomer, Excess::Count);
    let taken = [(); 4].map(|()| count());
    let refusals: Vec<_> = taken.iter().map(|(permit, refusal)| (permit.is_some(), *refusal)).collect();
    let [full, kept] = [NoPlace::Full, NoPlace::Kept].map(|why| (true, Some(why)));
    assert_eq!(refusals, [(true, None), kept, kept, full]);
    assert_eq!((limit.in_flight(), limit.refused(), limit.kept()), (4, 3, 2));
}

/// Of 20 places 11 are taken. A read waits (for its 16, say): another read stands behind it, an optional part too, and
/// what matters more does not.
#[test]
fn a_newcomer_stands_behind_its_own_class_and_those_above() {
    let limit = Arc::new(Limit::new(20));
    let _held = hold(&limit, 10);
    let waiting = limit.wait_as(Read).unwrap();
    assert_eq!(
        [Optional, Read, Guarded, Effect].map(|class| is_given(&limit, class)),
        [false, false, true, true]
    );
    assert_eq!(newcomer(&limit, Read).unwrap_err(), NoPlace::Full, "the free places are the waiter's");
    drop(waiting);
    assert_eq!([Optional, Read].map(|class| is_given(&limit, class)), [true, true]);
}

/// How often somebody of each class was told.
#[derive(Default)]
struct Told([AtomicU32; 4]);

impl Told {
    fn so_far(&self) -> [u32; 4] {
        self.0.each_ref().map(|told| told.load(Ordering::Relaxed))
    }
}

impl OnRelease for Told {
    fn released(&self, class: ClassShare) {
        self.0[class as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// A limit of 20 that is full, and who is told of places.
fn full() -> (Arc<Limit>, Vec<Permit>, Arc<Told>) {
    let limit = Arc::new(Limit::new(20));
    let told = Arc::new(Told::default());
    limit.notify_with(Arc::<Told>::clone(&told));
    let held = hold(&limit, 20);
    (limit, held, told)
}

/// The effect is told, takes the place, and hands the word on to the read; that may use no place but below 17.
#[test]
fn a_free_place_is_announced_to_the_highest_class_that_waits() {
    let (limit, mut held, told) = full();
    let (read, effect) = (limit.wait_as(Read).unwrap(), limit.wait_as(Effect).unwrap());
    held.pop();
    assert!(read.try_acquire().is_none(), "19 are taken");
    assert_eq!(told.so_far(), [0, 0, 0, 1]);
    held.extend(effect.try_acquire());
    drop(effect);
    assert_eq!(told.so_far(), [0, 1, 0, 1]);
    held.truncate(16);
    assert!(read.try_acquire().is_none(), "the 17th is not a read's");
    held.pop();
    assert!(read.try_acquire().is_some());
}

/// A place came back between the refusal and the mark, and was announced to a read that may not use it. Who is the first of
/// its class and those above tries once more; behind others of its own it does not.
#[test]
fn a_waiter_that_only_lower_ones_precede_tries_at_once() {
    let (limit, mut held, _told) = full();
    let _read = limit.wait_as(Read).unwrap();
    held.pop();
    let first = limit.wait_as(Guarded).unwrap();
    assert!(first.try_at_once().is_none(), "the 20th is an effect's");
    let second = limit.wait_as(Effect).unwrap();
    assert!(second.try_at_once().is_some());
    let third = limit.wait_as(Effect).unwrap();
    assert!(third.try_at_once().is_none());
}

/// 1023 of each class may wait, and none of them takes the mark of another class.
#[test]
fn no_more_than_so_many_of_a_class_wait() {
    let limit = Arc::new(Limit::new(1));
    let _held = newcomer(&limit, Effect).unwrap();
    let mut waiting = Vec::new();
    for class in ClassShare::ALL {
        waiting.extend((0..WAITERS_MOST).map(|_| limit.wait_as(class).unwrap()));
        assert!(limit.wait_as(class).is_none());
    }
    assert_eq!((limit.waiting(), limit.in_flight()), (4 * 1023, 1));
    waiting.pop();
    assert!(limit.wait_as(Effect).is_some());
    drop(waiting);
    assert_eq!((limit.waiting(), limit.in_flight()), (0, 1));
}

/// 62 threads of the lower classes are never more than 18 in 20 places, those of optional parts alone never more than 11;
/// so two effects, one at a time each, find a place every time, once the others fill all that they may.
#[test]
fn sixty_four_threads_leave_the_last_places_to_effects() {
    const THREADS: usize = 64;
    const ROUNDS: usize = 4_000;
    let limit = Arc::new(Limit::new(20));
    let (lower, optional) = (AtomicU32::new(0), AtomicU32::new(0));
    let is_over = AtomicBool::new(false);
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS - 2 {
            let class = [Optional, Read, Guarded][number % 3];
            let (limit, lower, optional, start, is_over) = (&limit, &lower, &optional, &start, &is_over);
            scope.spawn(move || {
                start.wait();
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(permit) = newcomer(limit, class) else { continue };
                    let one = u32::from(class == Optional);
                    let before =
                        (lower.fetch_add(1, Ordering::AcqRel), optional.fetch_add(one, Ordering::AcqRel));
                    thread::yield_now();
                    optional.fetch_sub(one, Ordering::AcqRel);
                    lower.fetch_sub(1, Ordering::AcqRel);
                    drop(permit);
                    assert!(before.0 < 18 && before.1 + one <= 11, "{before:?} were inside already");
                }
            });
        }
        let effects = [0, 1].map(|_| {
            scope.spawn(|| {
                start.wait();
                while limit.kept() == 0 {
                    thread::yield_now();
                }
                (0..ROUNDS).filter(|_| is_given(&limit, Effect)).count()
            })
        });
        let given = effects.map(|effect| effect.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(given, [ROUNDS; 2]);
    });
    assert_eq!(limit.in_flight(), 0);
}

proptest! {
    /// Against plain counts per class, with waiters and changes of the limit.
    #[test]
    fn classes_agree_with_plain_counts(
        first_limit in 0..12_u32,
        steps in vec((0..9_usize, select(&ClassShare::ALL[..]), 0..12_u32, any::<Index>()), 1..160),
    ) {
        let limit = Arc::new(Limit::new(first_limit));
        let told = Arc::new(Told::default());
        limit.notify_with(Arc::<Told>::clone(&told));
        let (mut held, mut waiting) = (Vec::<Permit>::new(), Vec::<Waiting>::new());
        let (mut places, mut refused, mut kept) = (first_limit, 0, 0);
        let mut expected = [0; 4];
        let highest = |waiting: &[Waiting]| waiting.iter().map(Waiting::class).max();
        for (step, class, number, who) in steps {
            let taken = held.len() as u32;
            // Less than 60, 85 and 95 %, but one in any case.
            let percent = [60, 85, 95, 0][class as usize];
            let fits = match class {
                Effect => taken < places,
                _ => taken < places && (taken == 0 || (taken + 1) * 100 < percent * places),
            };
            match step {
                0..=3 => {
                    let turn = if step == 0 { Turn::Waiter } else { Turn::Newcomer };
                    let is_behind = step != 0 && waiting.iter().any(|waiting| waiting.class() >= class);
                    let outcome = limit.try_acquire_as(class, turn, Excess::Refuse);
                    let is_kept = !fits && taken < places;
                    match outcome {
                        Ok(permit) => {
                            prop_assert!(fits && !is_behind);
                            held.push(permit);
                        }
                        Err(why) => {
                            prop_assert!(!fits || is_behind);
                            prop_assert_eq!(why == NoPlace::Kept, is_kept);
                            refused += 1;
                            kept += u64::from(is_kept);
                        }
                    }
                }
                4 | 5 if !held.is_empty() => {
                    drop(held.swap_remove(who.index(held.len())));
                    highest(&waiting).into_iter().for_each(|class| expected[class as usize] += 1);
                }
                6 | 7 if number < 6 => waiting.extend(limit.wait_as(class)),
                6 | 7 if !waiting.is_empty() => {
                    drop(waiting.swap_remove(who.index(waiting.len())));
                    highest(&waiting).into_iter().for_each(|class| expected[class as usize] += 1);
                }
                8 if number < 4 => {
                    places = number * 4;
                    limit.reconfigure(places);
                    highest(&waiting).into_iter().for_each(|class| expected[class as usize] += 1);
                }
                _ => {}
            }
            prop_assert_eq!((limit.in_flight(), limit.waiting()), (held.len() as u32, waiting.len() as u32));
            prop_assert_eq!((limit.refused(), limit.kept()), (refused, kept));
            prop_assert_eq!(told.so_far(), expected);
        }
    }
}
