//! A restart keeps copies and their dates; another boot trusts the date only as far as it can be trusted.

use std::time::Duration;

use crate::support::shop::{SPANISH, down, durable};
use crate::support::{BOUND, Gateway, Hand, Policy, Reading, expect, product, products, run};
use backstop_lab::origin::Origin;

const DISK: &str = "snapshots = { memory = \"16 MiB\", disk = \"64 MiB\" }";
const HOUR_NS: i64 = 3_600_000_000_000;
/// Any boot that is not this machine's present one.
const ANOTHER_BOOT: &str = "; boot 00112233445566778899aabbccddeeff";

#[derive(Clone, Copy)]
enum End {
    Graceful,
    Kill,
}

struct Saved {
    origin: Origin,
    policy: Policy,
    gateway: Gateway,
    at: Reading,
}

/// A product read at a known moment, on disk, and an origin that is down. The clock stands still.
async fn saved(change: impl FnOnce(Policy) -> Policy) -> Saved {
    let origin = Origin::start().await.unwrap();
    origin.default(products("first"));
    let policy = change(Policy::shop(origin.addr()).store(DISK));
    let gateway = Gateway::start(&policy);
    let mut hand = gateway.hand();
    hand.freeze();
    hand.say("sync on");
    let at = hand.reading();
    gateway.get("/p/1", &SPANISH).await;
    durable(&gateway, 1).await;
    down(&origin).await;
    Saved { origin, policy, gateway, at }
}

impl Saved {
    /// Ends this life and begins the next one with the clock standing still as told.
    fn again(mut self, end: End, clock: &str) -> (Self, Hand) {
        let folder = match end {
            End::Graceful => self.gateway.stop(),
            End::Kill => self.gateway.kill(),
        };
        self.gateway = Gateway::start_with_clock(&folder, &self.policy, clock);
        let hand = self.gateway.hand();
        (self, hand)
    }

    async fn expect_copy(&self, age: u64) {
        let answer = self.gateway.get("/p/1", &SPANISH).await;
        expect::copy(&answer, &product("1", "first", "es"), age, "connect");
    }

    /// The copy is known and refused: its date lies ahead, or the clock is known to have run back.
    async fn expect_refused_for_its_date(&self) {
        let refused = self.gateway.get("/p/1", &SPANISH).await;
        let mark = refused.mark().unwrap().expect("a mark");
        assert_eq!((refused.status(), mark.outcome.as_str()), (503, "rejected"));
        assert!(matches!(mark.reason.as_deref(), Some("age" | "clock")), "{:?}", refused.head);
    }

    async fn expect_refused(&self, reason: &str) {
        expect::no_copy(&self.gateway.get("/p/1", &SPANISH).await, reason, "connect");
    }
}

/// In the same boot the time since boot decides, through a restart too: 60 s are served and 60 s + 1 ns refused.
async fn the_date_survives(end: End) {
    let saved = saved(|policy| policy).await;
    let start = saved.at.after(Duration::from_secs(30)).as_start();
    let (saved, mut hand) = saved.again(end, &start);
    saved.expect_copy(30).await;
    hand.advance(Duration::from_secs(30));
    saved.expect_copy(60).await;
    hand.advance(Duration::from_nanos(1));
    saved.expect_refused("age").await;
    assert_eq!(saved.origin.count_of("GET", "/p/1"), 1);
}

#[test]
fn a_graceful_restart_keeps_the_date() {
    run(the_date_survives(End::Graceful));
}

#[test]
fn kill_9_keeps_the_date() {
    run(the_date_survives(End::Kill));
}

/// In one boot no step of the date matters: neither does it make an old copy young, nor a young one old.
#[test]
fn steps_of_the_date_change_nothing_in_the_same_boot() {
    run(async {
        let mut saved = saved(|policy| policy).await;
        for step in [-HOUR_NS, 2 * HOUR_NS] {
            saved.gateway.hand().wall(step);
            saved.expect_copy(0).await;
        }
        for wall_step in [-HOUR_NS, HOUR_NS] {
            let then = saved.at.after(Duration::from_secs(60));
            let start = Reading { wall: then.wall + wall_step, ..then }.as_start();
            let (next, mut hand) = saved.again(End::Graceful, &start);
            saved = next;
            saved.expect_copy(60).await;
            hand.mono(1);
            saved.expect_refused("age").await;
        }
    });
}

/// Under another boot only the date is left, and it counts while the kernel vouches for it.
#[test]
fn another_boot_goes_by_a_synchronised_date() {
    run(async {
        let saved = saved(|policy| policy).await;
        let start = saved.at.after(Duration::from_secs(60)).as_start();
        // A machine that has just booted: its time since boot is small and tells nothing about the copy.
        let clock = format!("{start}; mono -{}{ANOTHER_BOOT}; sync on", saved.at.mono / 2);
        let (saved, mut hand) = saved.again(End::Kill, &clock);
        saved.expect_copy(60).await;
        hand.wall(1);
        saved.expect_refused("age").await;
        hand.wall(-1);
        hand.say("sync off");
        saved.expect_refused("clock").await;
    });
}

/// One hour forward makes every copy too old. That is the safe side.
#[test]
fn another_boot_with_the_date_an_hour_ahead_refuses() {
    run(async {
        let saved = saved(|policy| policy).await;
        let start = saved.at.after(Duration::from_secs(30)).as_start();
        let (saved, _) = saved.again(End::Kill, &format!("{start}; wall +{HOUR_NS}{ANOTHER_BOOT}; sync on"));
        saved.expect_refused("age").await;
    });
}

/// One hour back would make a copy of 3630 s look 30 s old. A kernel that does not vouch for the date is not believed; and a
/// date before the copy's own is one that ran back, or makes it a copy from the future.
#[test]
fn another_boot_with_the_date_an_hour_behind_refuses() {
    run(async {
        let saved = saved(|policy| policy).await;
        let start = saved.at.after(Duration::from_secs(3630)).as_start();
        let behind = format!("; wall -{HOUR_NS}{ANOTHER_BOOT}");
        let (saved, _) = saved.again(End::Kill, &format!("{start}{behind}; sync off"));
        saved.expect_refused("clock").await;
        let start = saved.at.after(Duration::from_secs(30)).as_start();
        let (saved, _) = saved.again(End::Kill, &format!("{start}{behind}; sync on"));
        saved.expect_refused_for_its_date().await;
    });
}

/// Under another boot the date reaches 45 s and then shows 5 s: whatever the copy's age seems to be, it is not believed, in
/// this life and in the next one. As soon as the date has passed the mark again, it counts.
#[test]
fn a_date_behind_the_high_water_mark_is_not_believed() {
    const BACK_NS: i64 = 40_000_000_000;
    run(async {
        let saved = saved(|policy| policy).await;
        let late = saved.at.after(Duration::from_secs(45)).as_start();
        let (saved, mut hand) = saved.again(End::Kill, &format!("{late}{ANOTHER_BOOT}; sync on"));
        saved.expect_copy(45).await;
        // Once a second the gateway notes how far the date has come. Until it has, the earlier date is believed.
        let noted = async {
            loop {
                hand.wall(-BACK_NS);
                let answer = saved.gateway.get("/p/1", &SPANISH).await;
                if answer.status() == 503 {
                    return answer;
                }
                hand.wall(BACK_NS);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let refused = tokio::time::timeout(BOUND, noted).await.expect("the date is noted");
        expect::no_copy(&refused, "clock", "connect");

        let early = saved.at.after(Duration::from_secs(5)).as_start();
        let (saved, mut hand) = saved.again(End::Graceful, &format!("{early}{ANOTHER_BOOT}; sync on"));
        saved.expect_refused("clock").await;
        hand.wall(BACK_NS + 1_000_000_000);
        saved.expect_copy(46).await;
    });
}

/// `after_restart = "trust"` accepts in writing a clock that nobody vouches for. It never accepts one that ran back.
#[test]
fn trust_accepts_an_unsynchronised_clock_and_no_other_risk() {
    run(async {
        let trusting = Policy::description("after_restart = \"trust\"");
        let saved = saved(|policy| policy.replace_route("description.public_read", &trusting)).await;
        let start = saved.at.after(Duration::from_secs(60)).as_start();
        let (saved, mut hand) = saved.again(End::Kill, &format!("{start}{ANOTHER_BOOT}; sync off"));
        saved.expect_copy(60).await;
        hand.wall(1);
        saved.expect_refused("age").await;
        // A copy from the future: the date is before the moment at which it was read.
        let start = Reading { wall: saved.at.wall - 1, ..saved.at }.as_start();
        let (saved, _) = saved.again(End::Kill, &format!("{start}{ANOTHER_BOOT}; sync off"));
        saved.expect_refused_for_its_date().await;
    });
}

/// The copies of a route are those of its rules. Under other rules the same name finds none of them: not those of another
/// tenant's field, nor those of which less was demanded, nor those that answer another question.
#[test]
fn copies_of_other_rules_are_not_found_after_a_restart() {
    run(async {
        let both = [SPANISH[0], SPANISH[1], ("X-User", "a"), SPANISH[2]];
        let changes = [
            "key = [\"path.id\", \"language\", \"header.x-user\"]",
            "key = [\"language\", \"path.id\", \"header.x-tenant\"]",
            "correct = { type = \"application/json\", has = [\"/id\", \"/text\", \"/price\"] }",
            "languages = [\"es\"]",
            "request_headers = { set = { x-shop = \"b\" } }",
            "strip_prefix = \"/p\"",
        ];
        for change in changes {
            let Saved { policy, gateway, .. } = saved(|policy| policy).await;
            let changed =
                policy.clone().replace_route("description.public_read", &Policy::description(change));
            let folder = gateway.stop();
            let gateway = Gateway::start_with_clock(&folder, &changed, "freeze");
            expect::no_copy(&gateway.get("/p/1", &both).await, "missing", "connect");
            // And the rules as they were find them again.
            let gateway = gateway.restart(&policy);
            assert_eq!(gateway.get("/p/1", &SPANISH).await.status(), 200, "{change}");
        }
    });
}
