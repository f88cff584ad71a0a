//! Clients that leave and code that panics: every place comes back, and nobody else is blamed.
//!
//! A client that closes its connection is no failure of the service (<https://github.com/traefik/traefik/issues/2932>).

use std::panic::{AssertUnwindSafe, catch_unwind};

use backstop::engine::health::{BreakerRules, Phase};
use backstop::engine::outcome::Outcome;

use crate::support::{
    Does, Gate, MS, PRODUCT, Piece, SECOND, Shop, answers_in_pieces, description, description_with, get,
    once_open, request, says,
};

/// At every point at which a request can wait: in the queue, before the call, in the head, in the body, and in its own
/// answer.
#[test]
fn ten_thousand_cancelled_requests_leave_nothing_behind() {
    let mut policy = description_with(|read| read.buffer_bytes = 4);
    policy.dependencies[0].connections = 2;
    policy.dependencies[0].queue = 10 * SECOND;
    let shop = Shop::open(policy);
    let busy = Gate::default();
    let endless = vec![Piece::Data("more than four bytes"), Piece::Hangs];
    for number in 0..10_000_usize {
        match number % 5 {
            0 => {
                shop.catalog.does(once_open(&busy, says("never")));
                let (mut one, mut two) = (shop.send(get(PRODUCT)), shop.send(get(PRODUCT)));
                assert!(one.is_pending() && two.is_pending());
                let mut queued = shop.send(get(PRODUCT));
                assert!(queued.is_pending());
                if number % 2 == 0 {
                    drop(one);
                    drop(queued);
                }
            }
            1 => {
                shop.catalog.does(Does::Hangs);
                let method = if number % 2 == 0 { "GET" } else { "POST" };
                assert!(shop.send(request(method, PRODUCT, &[])).is_pending());
            }
            2 => {
                shop.catalog.does(answers_in_pieces(200, &[], vec![Piece::Data("x"), Piece::Hangs]));
                assert!(shop.send(get(PRODUCT)).is_pending());
            }
            3 => {
                shop.catalog.does(answers_in_pieces(200, &[], endless.clone()));
                let (_, mut body) = shop.send(get(PRODUCT)).answered();
                assert_eq!(body.piece(), "more than four bytes");
                assert!(number % 2 == 0 || body.is_pending());
            }
            _ => {
                shop.catalog.does(says("v1"));
                drop(shop.send(get(PRODUCT)));
                let (_, unread) = shop.send(get(PRODUCT)).answered();
                drop(unread);
            }
        }
        shop.later(MS);
    }
    assert_eq!(shop.in_flight(), [0; 4]);
    assert_eq!(shop.dependency().in_flight.waiting(), 0);
    assert_eq!(shop.failures(), 0);
    // Three requests in each first case, one in each other; one that was never polled does not count.
    assert_eq!(shop.total(Outcome::Abandoned), 2_000 * (3 + 1 + 1 + 1 + 1));
    shop.catalog.does(says("v2"));
    assert_eq!(shop.line(get(PRODUCT)), "200 v2", "all places are free");
}

#[test]
fn a_thousand_panicking_requests_leave_nothing_behind() {
    let mut policy = description_with(|read| read.buffer_bytes = 4);
    policy.dependencies[0].connections = 1;
    let shop = Shop::open(policy);
    for number in 0..1_000 {
        match number % 4 {
            0 => shop.catalog.does(Does::Panics),
            1 => {
                let gate = Gate::default();
                shop.catalog.does(once_open(&gate, Does::Panics));
                let mut waiting = shop.send(get(PRODUCT));
                assert!(waiting.is_pending());
                gate.open();
                assert!(catch_unwind(AssertUnwindSafe(|| waiting.poll().is_ready())).is_err());
                continue;
            }
            2 => shop.catalog.does(answers_in_pieces(200, &[], vec![Piece::Panics])),
            _ => {
                let pieces = vec![Piece::Data("more than four bytes"), Piece::Panics];
                shop.catalog.does(answers_in_pieces(200, &[], pieces));
            }
        }
        assert!(catch_unwind(AssertUnwindSafe(|| shop.ask(get(PRODUCT)))).is_err());
    }
    assert_eq!((shop.in_flight(), shop.failures()), ([0; 4], 0));
    assert_eq!(shop.total(Outcome::Failed), 1_000, "somebody must see that they panicked");
    shop.catalog.does(says("v2"));
    assert_eq!(shop.line(get(PRODUCT)), "200 v2");
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_body_has_abandoned_it() {
    let shop = Shop::open(description_with(|read| read.buffer_bytes = 4));
    let pieces = vec![Piece::Data("more than "), Piece::Data("four bytes"), Piece::Hangs];
    shop.catalog.does(answers_in_pieces(200, &[], pieces));
    let (_, mut body) = shop.send(get(PRODUCT)).answered();
    assert_eq!(body.piece(), "more than ");
    assert_eq!(shop.in_flight(), [1, 1, 0, 1]);
    drop(body);
    assert_eq!(shop.in_flight(), [0; 4]);
    assert_eq!((shop.total(Outcome::Abandoned), shop.total(Outcome::Normal)), (1, 0));
    assert_eq!((shop.dependency().tally.abandoned(), shop.failures()), (1, 0));
}

/// Ten impatient clients, then a patient one: the service is as healthy as before.
#[test]
fn impatient_clients_are_nobodys_failure() {
    let shop = Shop::open(description().policy());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v1")));
    for _ in 0..10 {
        let mut impatient = shop.send(get(PRODUCT));
        assert!(impatient.is_pending());
        shop.later(150 * MS);
    }
    assert_eq!((shop.failures(), shop.total(Outcome::Abandoned), shop.in_flight()), (0, 10, [0; 4]));
    gate.open();
    assert_eq!(shop.line(get(PRODUCT)), "200 v1");
}

/// Four clients in a row wait for a service that hangs, alone each, and leave when the answer is slow (150 ms and more):
/// the service is left alone after that. Of those who leave at 150 ms sharp nothing is known.
#[test]
fn a_call_that_was_slow_when_its_client_left_counts_as_slow() {
    for (waited, expected) in [(150 * MS, "closed"), (151 * MS, "open")] {
        let mut policy = description().policy();
        policy.dependencies[0].breaker =
            Some(BreakerRules { min_calls: 4, slow: 150 * MS, ..BreakerRules::default() });
        let shop = Shop::open(policy);
        shop.catalog.does(Does::Hangs);
        for _ in 0..4 {
            let mut impatient = shop.send(get(PRODUCT));
            assert!(impatient.is_pending());
            shop.later(waited);
        }
        let phase = shop.dependency().health.phase(shop.clock.now().mono);
        assert_eq!(matches!(phase, Phase::Open { .. }), expected == "open", "{waited:?}: {phase:?}");
        assert_eq!((shop.failures(), shop.total(Outcome::Abandoned)), (0, 4));
    }
}

/// Whoever sends a body need not ask once more after its last frame.
#[test]
fn a_body_that_is_dropped_after_its_last_frame_is_complete() {
    for buffer_bytes in [4, 1 << 20] {
        let shop = Shop::open(description_with(|read| read.buffer_bytes = buffer_bytes));
        shop.catalog.does(says("more than four bytes"));
        let (_, mut body) = shop.send(get(PRODUCT)).answered();
        assert!(!body.is_end_stream());
        assert_eq!(body.piece(), "more than four bytes");
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!((shop.total(Outcome::Normal), shop.total(Outcome::Abandoned)), (1, 0), "{buffer_bytes}");
        assert_eq!(shop.in_flight(), [0; 4]);
    }
}
