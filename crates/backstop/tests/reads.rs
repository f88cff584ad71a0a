//! A protected plain function: the same limits, ages and classification without HTTP.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stop the test")]

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backstop::builder;
use backstop::call::{Answered, Reads, Unanswered};
use backstop::clock::{Clock, ManualClock};
use backstop::engine::alternative::{ANY_POLICY, Verified};
use backstop::engine::failure::FailureKind;
use backstop::engine::outcome::{Outcome, Source};
use backstop::engine::policy::{AlternativeRules, Dependency, DependencyId, FixedAnswer, Origin, Policy};
use backstop::engine::snapshot::ObservedAt;
use backstop::engine::time::{BootId, Mono, Now, Wall, WallTrust};
use tokio::sync::oneshot;
use tokio_test::task;

const MS: Duration = Duration::from_millis(1);
const NS: Duration = Duration::from_nanos(1);
const SECOND: Duration = Duration::from_secs(1);
const MAX_AGE: Duration = Duration::from_secs(60);
/// Of the deadline of 300 ms, 3 ms each are kept for the alternative and for the reply.
const ATTEMPT_END: Duration = Duration::from_millis(294);

/// How the catalog fails; `None` is nothing that an earlier value may hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault(Option<FailureKind>);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

const DOWN: Fault = Fault(Some(FailureKind::Connect));

type Reading<'a> = task::Spawn<Pin<Box<dyn Future<Output = Answer> + 'a>>>;
type Answer = Result<Answered<&'static str>, Unanswered<Fault>>;

struct Catalog {
    reads: Reads<u32, &'static str, Fault>,
    clock: ManualClock,
}

impl Catalog {
    /// Two reads at a time, 300 ms, 60 s.
    fn new() -> Self {
        let start =
            Now { mono: Mono::from_ns(1_000_000_000_000_000), boot: BootId([1; 16]), ..Now::default() };
        let (clock, hand) = Clock::manual(start);
        let policy = builder::public_read("description", 300 * MS).in_flight(2).max_age(MAX_AGE).policy();
        Self { reads: Reads::new(clock, policy, 100, |fault: &Fault| fault.0).unwrap(), clock: hand }
    }

    /// A read whose function gives this at once.
    fn read(&self, key: u32, gives: Result<&'static str, Fault>) -> Answer {
        at_once(self.reads.read(key, || async move { gives }))
    }

    fn with_a_copy() -> Self {
        let catalog = Self::new();
        assert_eq!(catalog.read(42, Ok("v1")), primary("v1"));
        catalog
    }

    fn in_flight(&self) -> u32 {
        self.reads.state().in_flight.in_flight()
    }
}

fn at_once<F: Future>(future: F) -> F::Output {
    match task::spawn(future).poll() {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits for something"),
    }
}

fn primary(value: &'static str) -> Answer {
    Ok(Answered { value, source: Source::Primary, age: Duration::ZERO })
}

fn copy(value: &'static str, age: Duration) -> Answer {
    Ok(Answered { value, source: Source::Snapshot, age })
}

/// `rejected: age` and the like.
fn words(answer: &Answer) -> String {
    answer.as_ref().unwrap_err().to_string()
}

#[test]
fn a_value_is_served_for_sixty_seconds_and_not_a_nanosecond_longer() {
    let catalog = Catalog::with_a_copy();
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v1", Duration::ZERO));
    catalog.clock.advance(MAX_AGE);
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v1", MAX_AGE), "the age is exact");
    catalog.clock.advance(NS);
    assert_eq!(words(&catalog.read(42, Err(DOWN))), "rejected: age");
    assert_eq!(words(&catalog.read(43, Err(DOWN))), "rejected: missing");
    assert_eq!(catalog.read(42, Ok("v2")), primary("v2"));
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v2", Duration::ZERO));
}

#[test]
fn a_value_from_the_future_is_refused_and_a_stepped_date_means_nothing() {
    let catalog = Catalog::with_a_copy();
    catalog.clock.set(|now| {
        now.wall = Wall::from_unix_ns(-3_600_000_000_000);
        now.wall_trust = WallTrust::RanBack;
    });
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v1", Duration::ZERO));
    catalog.clock.set(|now| now.mono = now.mono.before(NS));
    assert_eq!(words(&catalog.read(42, Err(DOWN))), "rejected: age");
}

/// The classifier alone decides what an earlier value may stand in for.
#[test]
fn every_failure_leads_to_the_copy_and_any_other_error_reaches_the_caller() {
    for kind in [
        FailureKind::Dns,
        FailureKind::Connect,
        FailureKind::ConnectTimeout,
        FailureKind::Tls,
        FailureKind::Write,
        FailureKind::Reset,
        FailureKind::ReadTimeout,
        FailureKind::Incomplete,
        FailureKind::Protocol,
        FailureKind::Unavailable { status: 503 },
        FailureKind::Declared { status: 500 },
    ] {
        let catalog = Catalog::with_a_copy();
        assert_eq!(catalog.read(42, Err(Fault(Some(kind)))), copy("v1", Duration::ZERO), "{kind:?}");
    }
    let catalog = Catalog::with_a_copy();
    assert_eq!(catalog.read(42, Err(Fault(None))), Err(Unanswered::Propagated(Fault(None))));
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v1", Duration::ZERO), "the copy stays");
}

#[test]
fn a_function_that_hangs_ends_in_time() {
    let catalog = Catalog::with_a_copy();
    catalog.clock.advance(SECOND);
    let mut reading = task::spawn(catalog.reads.read(42, pending));
    assert!(reading.poll().is_pending());
    catalog.clock.advance(ATTEMPT_END - NS);
    assert!(reading.poll().is_pending(), "one nanosecond early");
    catalog.clock.advance(NS);
    assert!(reading.is_woken());
    assert_eq!(reading.poll(), Poll::Ready(copy("v1", SECOND + ATTEMPT_END)));
    drop(reading);
    assert_eq!(catalog.in_flight(), 0);
}

#[test]
fn the_third_of_two_is_refused_and_its_function_not_called() {
    let catalog = Catalog::with_a_copy();
    let mut under_way =
        [task::spawn(catalog.reads.read(1, pending)), task::spawn(catalog.reads.read(2, pending))];
    assert!(under_way.iter_mut().all(|reading| reading.poll().is_pending()));
    let third = at_once(catalog.reads.read(42, || async { panic!("called") }));
    assert_eq!(words(&third), "rejected: capacity");
    drop(under_way);
    assert_eq!(catalog.read(42, Ok("v2")), primary("v2"));
}

#[test]
fn ten_thousand_cancelled_and_a_thousand_panicking_reads_leave_nothing_behind() {
    let catalog = Catalog::new();
    for number in 0..10_000 {
        let mut reading = task::spawn(catalog.reads.read(number, pending));
        assert!(reading.poll().is_pending());
    }
    assert_eq!((catalog.in_flight(), catalog.reads.state().tally.total(Outcome::Abandoned)), (0, 10_000));
    for number in 0..1_000 {
        // In the function itself, and in the future that it returns.
        let panicking = || match number % 2 {
            0 => at_once(catalog.reads.read(number, || async { panic_quietly() })),
            _ => at_once(catalog.reads.read(number, || -> std::future::Pending<_> { panic_quietly() })),
        };
        assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
    }
    assert_eq!((catalog.in_flight(), catalog.reads.state().tally.total(Outcome::Failed)), (0, 1_000));
    assert_eq!(catalog.read(42, Ok("v1")), primary("v1"), "all places are free");
}

/// A panic that the panic hook does not print.
fn panic_quietly() -> ! {
    std::panic::resume_unwind(Box::new("scripted"))
}

async fn panics() -> Result<&'static str, Fault> {
    panic_quietly()
}

/// A spawned read that panics is its own task's business alone.
#[tokio::test]
async fn a_read_can_be_spawned_and_its_panic_joined() {
    let catalog = Arc::new(Catalog::new().reads);
    let shared = Arc::clone(&catalog);
    let panicked = tokio::spawn(async move { shared.read(42, panics).await });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(catalog.state().in_flight.in_flight(), 0);
    assert_eq!(catalog.read(42, || async { Ok("v1") }).await, primary("v1"));
}

/// Values and errors may hold lifetimes, as a boxed error does, and the read still goes into a task.
#[tokio::test]
async fn values_and_errors_may_be_of_any_kind_in_a_task() {
    type BoxError = Box<dyn std::error::Error + Send + Sync>;
    let policy = builder::public_read("description", 300 * MS).in_flight(2).max_age(MAX_AGE).policy();
    let (clock, _) = Clock::manual(Now::default());
    let classify = |error: &BoxError| error.is::<std::io::Error>().then_some(FailureKind::Connect);
    let reads: Reads<&'static str, &'static str, BoxError> = Reads::new(clock, policy, 10, classify).unwrap();
    let failing = || async { Err(BoxError::from(std::io::Error::other("down"))) };
    let task = tokio::spawn(async move {
        reads.read("key", failing).await.is_err_and(|e| e.to_string() == "rejected: missing")
    });
    assert!(task.await.unwrap());
}

/// A read that waits until the test gives it its value.
fn gated(catalog: &Catalog, key: u32) -> (oneshot::Sender<&'static str>, Reading<'_>) {
    let (give, given) = oneshot::channel();
    let ask = || async move { Ok(given.await.unwrap()) };
    let mut reading: Reading<'_> = task::spawn(Box::pin(catalog.reads.read(key, ask)));
    assert!(reading.poll().is_pending());
    (give, reading)
}

#[test]
fn a_slow_older_read_never_overwrites_a_newer_one() {
    let catalog = Catalog::new();
    let (give, mut older) = gated(&catalog, 42);
    catalog.clock.advance(MS);
    assert_eq!(catalog.read(42, Ok("v2")), primary("v2"));
    give.send("v1").unwrap();
    assert_eq!(older.poll(), Poll::Ready(primary("v1")));
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v2", Duration::ZERO));
}

#[test]
fn a_read_that_began_before_a_withdrawal_is_not_kept() {
    let catalog = Catalog::with_a_copy();
    let (give, mut before) = gated(&catalog, 42);
    catalog.reads.withdraw(&42);
    assert_eq!(words(&catalog.read(42, Err(DOWN))), "rejected: missing");
    give.send("v1").unwrap();
    assert_eq!(before.poll(), Poll::Ready(primary("v1")), "its own caller may have it");
    assert_eq!(words(&catalog.read(42, Err(DOWN))), "rejected: missing");
    assert_eq!(catalog.read(42, Ok("v2")), primary("v2"));
    assert_eq!(catalog.read(42, Err(DOWN)), copy("v2", Duration::ZERO));
}

/// Many threads keep values of one key; whatever their order, the newest stays.
#[test]
fn of_values_kept_at_once_the_newest_stays() {
    let catalog = Catalog::new();
    let at = |ns: u64| {
        let now = catalog.clock.now();
        ObservedAt::new(Now { mono: Mono::from_ns(now.mono.as_ns() - 10_000 + ns), ..now }, Duration::ZERO)
    };
    for round in 0..200_u32 {
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let reads = &catalog.reads;
                scope.spawn(move || {
                    for step in 0..10 {
                        let moment = thread + 4 * step;
                        reads.keep(&round, at(moment), if moment == 39 { "newest" } else { "older" });
                    }
                });
            }
        });
        let kept = catalog.read(round, Err(DOWN)).unwrap();
        assert_eq!((kept.value, kept.age), ("newest", Duration::from_nanos(10_000 - 39)));
    }
}

/// A value that was kept from another boot, with a date that has not come yet, gives way to what is read now.
#[test]
fn what_another_boot_kept_is_older_than_what_is_read_now_whatever_its_date() {
    let catalog = Catalog::new();
    let now = catalog.clock.now();
    let ahead = |boot| {
        ObservedAt::new(
            Now { wall: Wall::from_unix_ns(now.wall.as_unix_ns() + 1_000_000_000), boot, ..now },
            Duration::ZERO,
        )
    };
    catalog.reads.keep(&42, ahead(BootId([7; 16])), "then");
    assert_eq!(words(&catalog.read(42, Err(DOWN))), "rejected: age", "from the future");
    assert_eq!(catalog.read(42, Ok("now")), primary("now"));
    assert_eq!(catalog.read(42, Err(DOWN)), copy("now", Duration::ZERO));
    catalog.reads.keep(&42, ahead(BootId([7; 16])), "then");
    assert_eq!(catalog.read(42, Err(DOWN)), copy("now", Duration::ZERO));
}

/// The function can be called once, so nothing waits for a second call that cannot be made.
#[test]
fn a_policy_of_second_calls_leads_to_the_value_that_is_kept_at_once() {
    let catalog = retrying();
    let calls = std::cell::Cell::new(0);
    let read = |gives: Result<&'static str, Fault>| {
        at_once(catalog.reads.read(42, || async {
            calls.set(calls.get() + 1);
            gives
        }))
    };
    assert_eq!(read(Ok("v1")), primary("v1"));
    assert_eq!(read(Err(DOWN)), copy("v1", Duration::ZERO));
    assert_eq!(calls.get(), 2, "one for each read");
}

/// A stand-in that is an HTTP answer is no value.
#[test]
fn a_class_that_a_function_cannot_answer_for_is_refused_at_setup() {
    let new = |policy| Reads::<u32, u32, Fault>::new(Clock::manual(Now::default()).0, policy, 1, |_| None);
    let answer = FixedAnswer { status: 200, media_type: "text/plain".into(), body: Box::default() };
    let optional = builder::optional("tips", SECOND, answer).in_flight(1).policy();
    let said = new(optional).unwrap_err().to_string();
    assert_eq!(
        said,
        "route `tips`: a plain function answers for `public_read` and `direct` only, and asks no authorizer"
    );
    assert!(new(builder::direct("tips", SECOND).in_flight(1).policy()).is_ok());
    assert!(
        new(Policy { routes: Vec::new(), ..builder::direct("tips", SECOND).in_flight(1).policy() }).is_err()
    );
}

/// Reads whose function may be called a second time.
fn retrying() -> Catalog {
    let start = Now { mono: Mono::from_ns(1_000_000_000_000_000), ..Now::default() };
    let (clock, hand) = Clock::manual(start);
    let policy = builder::public_read("description", 300 * MS).in_flight(2).max_age(MAX_AGE).retry().policy();
    Catalog { reads: Reads::new(clock, policy, 100, |fault: &Fault| fault.0).unwrap(), clock: hand }
}

/// The second call comes within 25 ms and is told its number.
#[test]
fn a_function_that_failed_for_a_moment_is_called_once_more() {
    let catalog = retrying();
    let mut calls = Vec::new();
    let mut reading = task::spawn(catalog.reads.read_again(42, 1, |number| {
        calls.push(number);
        async move { if number == 1 { Err(DOWN) } else { Ok("v1") } }
    }));
    if reading.poll().is_pending() {
        catalog.clock.advance(25 * MS);
    }
    assert_eq!(reading.poll(), Poll::Ready(primary("v1")));
    drop(reading);
    assert_eq!((calls, catalog.in_flight()), (vec![1, 2], 0));
}

/// One that the caller repeats already, one that timed out, and one that can be called only once.
#[test]
fn no_other_function_is() {
    let catalog = retrying();
    let timed_out = Fault(Some(FailureKind::ReadTimeout));
    for (attempt, fault) in [(2, DOWN), (1, timed_out), (1, Fault(None))] {
        let mut calls = 0;
        let answer = at_once(catalog.reads.read_again(42, attempt, |_| {
            calls += 1;
            async move { Err(fault) }
        }));
        assert!(answer.is_err());
        assert_eq!(calls, 1, "{attempt} {fault:?}");
    }
    assert!(catalog.read(42, Err(DOWN)).is_err());
}

/// A function cannot be told to ask somebody else. So nobody else is asked, whatever the policy says.
#[test]
fn no_function_is_called_in_the_name_of_another_dependency() {
    let start = Now {
        mono: Mono::from_ns(1_000_000_000_000_000),
        wall: Wall::from_unix_ns(1_800_000_000_000_000_000),
        wall_trust: WallTrust::Synchronised,
        ..Now::default()
    };
    let (clock, hand) = Clock::manual(start);
    let mut policy = builder::public_read("description", 300 * MS).in_flight(2).max_age(MAX_AGE).policy();
    policy.dependencies.push(Dependency { name: "replica".into(), connections: 9, ..Dependency::default() });
    let verified = Verified {
        rate_per_second: 1_000,
        concurrency: 9,
        valid_from: start.wall,
        valid_until: Wall::from_unix_ns(1_900_000_000_000_000_000),
        policy: ANY_POLICY,
    };
    let (dependency, verified) = (DependencyId(1), Some(verified));
    policy.routes[0].alternative = Some(AlternativeRules { dependency, verified, origin: Origin::NONE });
    let reads = Reads::new(clock, policy, 100, |fault: &Fault| fault.0).unwrap();
    let catalog = Catalog { reads, clock: hand };
    assert_eq!(catalog.read(42, Ok("v1")), primary("v1"));
    let mut calls = 0;
    let answer = at_once(catalog.reads.read_again(42, 1, |_| {
        calls += 1;
        async { Err(DOWN) }
    }));
    assert_eq!((answer, calls), (copy("v1", Duration::ZERO), 1));
}
