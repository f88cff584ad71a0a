//! Parts of a limit's places.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn within(limit: &Arc<Limit>, places: u32) -> Option<Permit> {
    limit.try_acquire_within(Turn::Newcomer, Excess::Refuse, places)
}

/// By hand: of four places this part may use two, whoever holds them; the other two are left for those who may use all.
#[test]
fn a_part_of_the_places_counts_everybody() {
    let limit = Arc::new(Limit::new(4));
    let whole = limit.try_acquire(Turn::Newcomer, Excess::Refuse);
    let part = within(&limit, 2);
    assert!(whole.is_some() && part.is_some());
    assert!(within(&limit, 2).is_none());
    let (third, fourth) = (within(&limit, 3), within(&limit, u32::MAX));
    assert!(third.is_some() && fourth.is_some());
    assert!(within(&limit, u32::MAX).is_none(), "more than the limit are not there");
    assert_eq!((limit.in_flight(), limit.refused()), (4, 2));
    drop((whole, part));
    assert!(within(&limit, 2).is_none(), "two are still taken");
    drop(third);
    assert!(within(&limit, 2).is_some());
    assert!(within(&limit, 0).is_none());
}

#[test]
fn a_part_that_is_only_counted_is_given_and_counted() {
    let limit = Arc::new(Limit::new(4));
    let count = || limit.try_acquire_within(Turn::Newcomer, Excess::Count, 1);
    let (first, second) = (count(), count());
    assert!(first.is_some() && second.is_some());
    assert_eq!((limit.in_flight(), limit.refused()), (2, 1));
}

proptest! {
    /// Against plain counts, with waiters and changes of the limit.
    #[test]
    fn a_limit_agrees_with_plain_counts(
        first_limit in 0..8_u32,
        steps in vec((0..8_usize, 0..10_u32, any::<prop::sample::Index>()), 1..120),
    ) {
        let limit = Arc::new(Limit::new(first_limit));
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        let (mut places, mut refused, mut generation) = (first_limit, 0, 0);
        for (step, number, who) in steps {
            let taken = held.len() as u32;
            match step {
                0..=3 => {
                    let turn = if step == 0 { Turn::Waiter } else { Turn::Newcomer };
                    let excess = if step == 1 { Excess::Count } else { Excess::Refuse };
                    let fits = taken < number.min(places);
                    let is_given = step == 1 || (fits && (step == 0 || waiting.is_empty()));
                    refused += u64::from(!fits || !is_given);
                    let permit = limit.try_acquire_within(turn, excess, number);
                    prop_assert_eq!(permit.is_some(), is_given);
                    held.extend(permit);
                }
                4 | 5 if !held.is_empty() => drop(held.swap_remove(who.index(held.len()))),
                6 if number < 5 => waiting.extend(limit.wait_as(ClassShare::Effect)),
                6 if !waiting.is_empty() => drop(waiting.swap_remove(who.index(waiting.len()))),
                7 if number < 3 => {
                    places = number * 3;
                    generation += 1;
                    limit.reconfigure(places);
                }
                _ => {}
            }
            prop_assert_eq!(limit.in_flight(), held.len() as u32);
            prop_assert_eq!(limit.waiting(), waiting.len() as u32);
            prop_assert_eq!((limit.refused(), limit.generation()), (refused, generation));
        }
    }
}
