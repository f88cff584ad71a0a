//! How old a copy may be, and by which clock.

use std::time::Duration;

use backstop::engine::time::{BootId, Now, WallTrust};
use backstop_store::disk::DiskError;
use backstop_store::testing::FakeMedium;
use backstop_store::{Copies, StoreOptions};

use crate::support::{
    Gate, HOUR, MAX_AGE, MS, NS, PRODUCT, REFUSED, SECOND, START, Shop, THIS_BOOT, answers, description, get,
    once_open, says,
};

const TOO_OLD: &str = "503; outcome=rejected, reason=age, cause=connect";

fn served(age: u64) -> String {
    format!("200 v1; outcome=fallback, source=snapshot, age={age}, reason=connect")
}

/// A copy was read just now and the catalog cannot be reached any more.
fn after_a_read() -> Shop {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.catalog.does(REFUSED);
    shop
}

/// The limit is inclusive and holds to the nanosecond; only the age that is shown is rounded, downwards.
#[test]
fn a_copy_is_served_for_sixty_seconds_and_not_a_nanosecond_longer() {
    for (age, expected) in [
        (Duration::ZERO, served(0)),
        (30 * SECOND, served(30)),
        (31 * SECOND - NS, served(30)),
        (MAX_AGE - NS, served(59)),
        (MAX_AGE, served(60)),
        (MAX_AGE + NS, TOO_OLD.to_owned()),
        (24 * HOUR, TOO_OLD.to_owned()),
    ] {
        let shop = after_a_read();
        shop.later(age);
        assert_eq!(shop.line(get(PRODUCT)), expected, "{age:?}");
    }
}

#[test]
fn a_copy_from_the_future_is_refused() {
    let shop = after_a_read();
    shop.clock.set(|now| now.mono = now.mono.before(NS));
    let reply = shop.ask(get(PRODUCT));
    assert_eq!(reply.line(), TOO_OLD);
    assert!(reply.text().contains("urn:backstop:problem:snapshot-from-future"), "{reply:?}");
}

#[test]
fn what_was_never_read_is_missing() {
    let shop = after_a_read();
    assert_eq!(shop.line(get("/products/43")), "503; outcome=rejected, reason=missing, cause=connect");
}

/// Were the date renewed by serving, a copy asked for every ten seconds would live for ever.
#[test]
fn serving_never_renews_the_date() {
    let shop = after_a_read();
    for age in [10, 20, 30, 40, 50, 60] {
        shop.later(10 * SECOND);
        assert_eq!(shop.line(get(PRODUCT)), served(age));
    }
    shop.later(NS);
    assert_eq!(shop.line(get(PRODUCT)), TOO_OLD);
}

#[test]
fn a_correct_read_is_the_new_copy_with_a_new_date() {
    let shop = after_a_read();
    shop.later(59 * SECOND);
    shop.warm(get(PRODUCT), says("v2"));
    shop.catalog.does(REFUSED);
    shop.later(2 * SECOND);
    let expected = "200 v2; outcome=fallback, source=snapshot, age=2, reason=connect";
    assert_eq!(shop.line(get(PRODUCT)), expected);
}

/// RFC 9111 section 4.2.3: the time that the answer took counts, because it may have been made at its beginning.
#[test]
fn the_age_counts_from_the_beginning_of_the_read() {
    let shop = Shop::open(description().policy());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v1")));
    let mut slow = shop.send(get(PRODUCT));
    assert!(slow.is_pending());
    shop.later(200 * MS);
    gate.open();
    assert_eq!(slow.reply().line(), "200 v1");
    shop.catalog.does(REFUSED);
    shop.later(MAX_AGE - 200 * MS);
    assert_eq!(shop.line(get(PRODUCT)), served(60));
    shop.later(NS);
    assert_eq!(shop.line(get(PRODUCT)), TOO_OLD);
}

/// A cache in between cannot make an old answer young again: what came with `Age: 50` has ten seconds left
/// (<https://github.com/mitodl/ol-infrastructure/pull/5143>).
#[test]
fn an_answer_that_came_fifty_seconds_old_has_ten_left() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), answers(200, &[("age", "50")], "v1"));
    shop.catalog.does(REFUSED);
    let reply = shop.ask(get(PRODUCT));
    assert_eq!((reply.line(), reply.field("age")), (served(50), Some("50")));
    shop.later(10 * SECOND);
    assert_eq!(shop.line(get(PRODUCT)), served(60));
    shop.later(NS);
    assert_eq!(shop.line(get(PRODUCT)), TOO_OLD);
}

/// Within one boot only the boot-time clock counts.
#[test]
fn a_step_of_the_date_changes_no_age_within_one_boot() {
    for trust in [WallTrust::Synchronised, WallTrust::Unsynchronised, WallTrust::RanBack] {
        for hours in [-1, 1] {
            let shop = after_a_read();
            shop.later(30 * SECOND);
            step_date(&shop, hours);
            shop.clock.set(|now| now.wall_trust = trust);
            assert_eq!(shop.line(get(PRODUCT)), served(30), "{hours} h, {trust:?}");
        }
    }
}

/// Across boots only the date is left, and it must be believable.
#[test]
fn after_a_restart_the_date_decides_or_refuses() {
    const CLOCK: &str = "503; outcome=rejected, reason=clock, cause=connect";
    let restarted = |hours: i64, trust: WallTrust| {
        let shop = after_a_read();
        shop.later(30 * SECOND);
        step_date(&shop, hours);
        // The machine counts from its new beginning.
        shop.clock.set(|now| {
            now.mono = now.mono.before(100 * HOUR);
            now.boot = BootId([2; 16]);
            now.wall_trust = trust;
        });
        assert_ne!(shop.clock.now().boot, THIS_BOOT);
        shop.line(get(PRODUCT))
    };
    assert_eq!(restarted(0, WallTrust::Synchronised), served(30));
    assert_eq!(restarted(1, WallTrust::Synchronised), TOO_OLD);
    assert_eq!(restarted(-1, WallTrust::Synchronised), TOO_OLD, "from the future");
    for trust in [WallTrust::Unsynchronised, WallTrust::RanBack] {
        for hours in [-1, 0, 1] {
            assert_eq!(restarted(hours, trust), CLOCK, "{hours} h, {trust:?}");
        }
    }
}

/// The latest date that was ever seen is the mark below which the clock ran back.
#[test]
fn a_clock_behind_its_high_water_mark_is_not_believed_across_boots() {
    let shop = after_a_read();
    shop.later(30 * SECOND);
    shop.backstop.clock().refresh();
    shop.clock.set(|now| {
        now.boot = BootId([2; 16]);
        now.wall = backstop::engine::time::Wall::from_unix_ns(now.wall.as_unix_ns() - 1);
    });
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=clock, cause=connect");
    shop.clock.set(|now| now.wall = now.wall.after(NS));
    assert_eq!(shop.line(get(PRODUCT)), served(30));
}

fn step_date(shop: &Shop, hours: i64) {
    shop.clock.set(|now| {
        let ns = now.wall.as_unix_ns() + hours * 3_600_000_000_000;
        now.wall = backstop::engine::time::Wall::from_unix_ns(ns);
    });
}

/// The date that an earlier life had reached stands in the file, and counts from when the file can be read.
#[test]
fn a_file_that_could_be_opened_only_later_still_tells_that_the_clock_ran_back() {
    let disk = FakeMedium::default();
    let open = |now| {
        let pauses = (Duration::from_millis(1), Duration::from_millis(10));
        let options = StoreOptions { retry_pause: pauses, ..StoreOptions::new("") };
        Copies::open_on(Box::new(disk.clone()), options, now).0
    };
    let shop = Shop::over(description().policy(), open(START), START);
    shop.warm(get(PRODUCT), says("v1"));
    shop.later(HOUR);
    shop.backstop.keep_house();
    assert!(shop.backstop.copies().clone().close(Duration::from_secs(60)));
    // Another boot, half a minute after the copy was read as its clock has it, an hour behind what was seen.
    let back = Now { wall: START.wall.after(30 * SECOND), boot: BootId([2; 16]), ..START };
    disk.fail(Some(DiskError::Failed("not there yet".into())));
    let shop = Shop::over(description().policy(), open(back), back);
    shop.backstop.keep_house();
    assert_eq!(shop.clock.now().wall_trust, WallTrust::Synchronised);
    disk.fail(None);
    while shop.backstop.copies().health().entries == 0 {
        std::thread::yield_now();
    }
    assert_eq!(shop.backstop.keep_house().wall_trust, WallTrust::RanBack);
    shop.catalog.does(REFUSED);
    let line = shop.send(get(PRODUCT)).reply_after_disk().line();
    assert_eq!(line, "503; outcome=rejected, reason=clock, cause=connect");
}
