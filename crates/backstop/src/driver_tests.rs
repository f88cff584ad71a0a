//! What a flow learns of a client that keeps a call waiting.

use backstop_engine::flow::{HeadFacts, Method, RequestFacts, Trace};
use backstop_engine::health::{BreakerRules, WindowCount};
use backstop_engine::policy::RouteId;
use backstop_engine::time::Now;
use tokio_test::task::spawn;

use super::*;
use crate::builder;
use crate::clock::ManualClock;

const UPLOAD: RequestFacts = RequestFacts { method: Method::Unsafe, repeatable: false, ..RequestFacts::GET };

/// A dependency that takes 50 ms, once the client has sent everything.
struct Slow<'a> {
    upload: &'a UploadWatch,
    clock: ManualClock,
    client_leaves: bool,
}

impl Slow<'_> {
    fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

impl Hands for Slow<'_> {
    fn peek(&mut self) -> Option<CopyFacts> {
        None
    }

    async fn call(&mut self, attempt: Attempt, _: &Progress) -> Event {
        self.upload.wait(self.clock.now().mono);
        self.pass(5_000);
        if self.client_leaves {
            std::future::pending::<()>().await;
        }
        self.upload.arrive(self.clock.now().mono);
        self.pass(50);
        Event::Head { attempt: attempt.id, head: HeadFacts { status: 200, ..HeadFacts::default() } }
    }

    async fn collect(&mut self, _: AttemptId, _: u64) -> Event {
        Event::TimeUp(None)
    }

    async fn load(&mut self) -> Event {
        Event::Copy(Ok(None))
    }
}

/// Ten uploads to a dependency whose calls are slow from 100 ms on, and what its breaker counted. Nobody's time is up: the
/// flow learns of the client's slowness all the same.
fn counted(client_leaves: bool) -> WindowCount {
    let mut policy = builder::direct("uploads", Duration::from_secs(3_600)).in_flight(10).policy();
    policy.dependencies[0].breaker = Some(BreakerRules {
        slow: Duration::from_millis(100),
        window: Duration::from_secs(600),
        ..BreakerRules::default()
    });
    let engine = Engine::new(policy).unwrap();
    let (clock, manual) = Clock::manual(Now { mono: Mono::from_ns(1_000_000_000_000), ..Now::default() });
    let waiters = Waiters::of(&engine);
    let health = &engine.dependencies()[0].health;
    for _ in 0..10 {
        let upload = UploadWatch::default();
        let mut flow = Flow::begin(&engine, RouteId(0), UPLOAD, clock.now(), 0, Trace::off());
        let mut hands = Slow { upload: &upload, clock: manual.clone(), client_leaves };
        let mut driving = spawn(drive(&mut flow, &mut hands, &clock, &waiters, Some(&upload)));
        match driving.poll() {
            Poll::Ready(decision) => decision.settlement.complete(),
            Poll::Pending => assert!(client_leaves),
        }
        // Others come and go, and tell the breaker what time it is.
        health.phase(clock.mono());
        drop(driving);
    }
    health.counts(clock.mono())
}

#[test]
fn the_time_of_an_upload_is_not_the_dependencys() {
    assert_eq!(counted(false), WindowCount { calls: 10, failures: 0, slow: 0 });
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_upload_says_nothing_of_the_dependency() {
    assert_eq!(counted(true), WindowCount::default());
}
