use std::sync::Barrier;
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn spend_all(budget: &Budget) -> u32 {
    let mut spent = 0;
    while budget.try_spend() {
        spent += 1;
    }
    spent
}

/// By hand: three at the beginning; ten successes are one more, nine are none; two hundred fill it to ten and no more.
#[test]
fn ten_successes_pay_for_one_retry() {
    let budget = Budget::default();
    assert_eq!(spend_all(&budget), 3);
    for (successes, retries) in [(9, 0), (1, 1), (10, 1), (25, 2), (5, 1), (200, 10)] {
        for _ in 0..successes {
            budget.deposit();
        }
        assert_eq!(spend_all(&budget), retries, "after {successes}");
    }
    assert_eq!((budget.spent(), budget.exhausted()), (18, 7));
    assert_eq!(budget.level_thousandths(), 0);
}

/// By hand: a thousand successes at this share, and the three of the beginning. Shares added up as binary fractions give
/// one too few (ten times 0.1 is less than 1).
#[test]
fn retries_are_the_share_of_successes_exactly() {
    for (share, retries) in [(100, 103), (300, 303), (400, 403), (600, 603), (900, 903), (1_000, 1_003)] {
        let budget = Budget::new(BudgetRules { deposit_thousandths: share, ..BudgetRules::default() });
        let mut spent = spend_all(&budget);
        for _ in 0..1_000 {
            budget.deposit();
            spent += spend_all(&budget);
        }
        assert_eq!(spent, retries, "{share}");
    }
}

/// Neither time nor demand pays: in an outage three are made, whoever asks.
#[test]
fn an_outage_is_retried_three_times_in_all() {
    let budget = Budget::default();
    let paid = (0..100_000).filter(|_| budget.try_spend()).count();
    assert_eq!((paid, budget.spent(), budget.exhausted()), (3, 3, 99_997));
}

#[test]
fn senseless_numbers_are_cut_to_what_makes_sense() {
    let rules = BudgetRules {
        deposit_thousandths: u32::MAX,
        capacity_thousandths: 2_000,
        initial_thousandths: 9_000,
    };
    let budget = Budget::new(rules);
    assert_eq!(spend_all(&budget), 2, "no more at the beginning than can be saved");
    budget.deposit();
    assert_eq!(spend_all(&budget), 1, "a success pays for one retry at most");
}

/// By hand: of ten in flight two may be retries. The one that finds no place pays nothing; the one that cannot pay takes
/// no place.
#[test]
fn a_retry_takes_a_place_and_pays_or_neither() {
    let budget = Budget::default();
    let (first, second) = (budget.start(10).unwrap(), budget.start(10).unwrap());
    assert_eq!(budget.start(10).err(), Some(NoRetry::InFlight));
    assert_eq!((budget.in_flight(), budget.level_thousandths()), (2, 1_000));
    drop(first);
    assert_eq!(budget.start(1).err(), Some(NoRetry::InFlight), "of one in flight one may be, and one is");
    drop(second);
    let third = budget.start(1).unwrap();
    assert_eq!(budget.start(10).err(), Some(NoRetry::Budget));
    assert_eq!(budget.in_flight(), 1);
    drop(third);
    assert_eq!((budget.in_flight(), budget.spent()), (0, 3));
}

/// By hand: three are saved; a payment that is given back can be spent again, and never more than ten are saved.
#[test]
fn a_payment_is_given_back_once_and_within_the_capacity() {
    let budget = Budget::default();
    assert!(budget.can_pay() && budget.try_spend());
    budget.give_back();
    assert_eq!((budget.level_thousandths(), budget.spent()), (3_000, 0));
    assert_eq!(spend_all(&budget), 3);
    assert!(!budget.can_pay());
    for _ in 0..200 {
        budget.deposit();
    }
    assert!(budget.try_spend());
    budget.deposit();
    budget.give_back();
    assert_eq!((budget.level_thousandths(), budget.spent()), (10_000, 3));
}

proptest! {
    /// Against plain whole numbers.
    #[test]
    fn a_budget_agrees_with_whole_numbers(
        share in 0..1_500_u32, capacity in 0..12_000_u32, initial in 0..12_000_u32, steps in vec(any::<bool>(), 0..500),
    ) {
        let rules = BudgetRules {
            deposit_thousandths: share,
            capacity_thousandths: capacity,
            initial_thousandths: initial,
        };
        let budget = Budget::new(rules);
        let mut level = i64::from(initial.min(capacity));
        for is_success in steps {
            if is_success {
                budget.deposit();
                level = (level + i64::from(share.min(1_000))).min(i64::from(capacity));
            } else {
                prop_assert_eq!(budget.try_spend(), level >= 1_000);
                level -= if level >= 1_000 { 1_000 } else { 0 };
            }
            prop_assert_eq!(budget.level_thousandths() as i64, level);
        }
    }
}

/// 64 threads, each with 1000 successes and 1000 wishes to retry: what was paid and what is left is what was earned, to
/// the last thousandth, if nothing ran over; here the capacity is too large for that.
#[test]
fn sixty_four_threads_spend_no_more_than_was_earned() {
    const THREADS: u64 = 64;
    let budget = Budget::new(BudgetRules { capacity_thousandths: 10_000_000, ..BudgetRules::default() });
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for _ in 0..1_000 {
                    budget.deposit();
                    drop(budget.start(u32::MAX));
                }
            });
        }
    });
    assert_eq!(budget.spent() * 1_000 + budget.level_thousandths(), 3_000 + THREADS * 1_000 * 100);
    assert_eq!(budget.spent() + budget.exhausted(), THREADS * 1_000);
    assert_eq!(budget.in_flight(), 0);
    assert!(budget.level_thousandths() < 64 * 1_000, "whoever could pay did");
}
