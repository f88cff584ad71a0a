use backstop::clock::ManualClock;
use backstop_engine::failure::{FailureKind, Phase, Sent};
use backstop_engine::time::Now;
use jsonwebtoken::Algorithm;

use super::super::tests::signer::ISSUER;
use super::*;

const MAX_AGE: Duration = Duration::from_secs(60);
const NS: Duration = Duration::from_nanos(1);
const SECOND: Duration = Duration::from_secs(1);

fn set(names: &[&str]) -> KeySet {
    KeySet::read(&ISSUER.set(names), &[Algorithm::ES256, Algorithm::ES384]).unwrap()
}

fn start() -> (Keys, Clock, ManualClock) {
    let now = Now { mono: Mono::from_ns(1_000_000_000), ..Now::default() };
    let (clock, hand) = Clock::manual(now);
    (Keys::new(MAX_AGE), clock, hand)
}

fn reset() -> Trouble {
    Trouble::Failed(Failure::new(FailureKind::Reset, Phase::Head, Sent::Maybe))
}

/// Whether it has an answer by now; `None` while it waits.
async fn at_once<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = std::future::ready(()) => None,
    }
}

async fn believed(keys: &Keys, clock: &Clock) -> Option<Result<(), &'static str>> {
    Some(at_once(keys.believed(clock)).await?.map(|_| ()).map_err(|outage| name(&outage)))
}

fn name(outage: &Verdict) -> &'static str {
    match outage {
        Verdict::Failed(_) => "failed",
        Verdict::Unclear => "unclear",
        _ => "no outage",
    }
}

#[tokio::test]
async fn before_the_first_fetch_has_ended_everybody_waits() {
    let (keys, clock, _) = start();
    assert_eq!(believed(&keys, &clock).await, None);
    keys.begin(clock.mono());
    assert_eq!(believed(&keys, &clock).await, None);
    keys.failed(reset());
    assert_eq!(believed(&keys, &clock).await, Some(Err("failed")));
    keys.begin(clock.mono());
    assert_eq!(believed(&keys, &clock).await, None);
    keys.failed(Trouble::Unusable);
    assert_eq!(believed(&keys, &clock).await, Some(Err("unclear")));
    keys.begin(clock.mono());
    keys.fetched(set(&["ES256"]), clock.mono(), Duration::ZERO);
    assert_eq!(believed(&keys, &clock).await, Some(Ok(())));
}

/// From the moment that they were asked for, inclusive, and not a nanosecond longer; a failed fetch changes nothing.
#[tokio::test]
async fn keys_are_believed_for_max_age_and_not_a_nanosecond_longer() {
    let (keys, clock, hand) = start();
    let asked_at = clock.mono();
    keys.begin(asked_at);
    hand.advance(SECOND);
    keys.fetched(set(&["ES256"]), asked_at, Duration::ZERO);
    hand.advance(Duration::from_secs(59));
    assert_eq!(keys.age(clock.mono()), Some(MAX_AGE));
    assert_eq!(believed(&keys, &clock).await, Some(Ok(())));
    keys.begin(clock.mono());
    assert_eq!(believed(&keys, &clock).await, Some(Ok(())));
    hand.advance(NS);
    assert_eq!(believed(&keys, &clock).await, None, "a fetch is under way");
    keys.failed(reset());
    assert_eq!(believed(&keys, &clock).await, Some(Err("failed")));
    keys.begin(clock.mono());
    keys.fetched(set(&["ES256"]), clock.mono(), Duration::ZERO);
    assert_eq!(believed(&keys, &clock).await, Some(Ok(())));
}

/// RFC 9111 section 5.1: what a cache between kept was true so long ago.
#[tokio::test]
async fn the_age_that_was_received_counts() {
    let (keys, clock, hand) = start();
    keys.begin(clock.mono());
    keys.fetched(set(&["ES256"]), clock.mono(), Duration::from_secs(59));
    hand.advance(SECOND);
    assert_eq!(believed(&keys, &clock).await, Some(Ok(())));
    hand.advance(NS);
    assert_eq!(believed(&keys, &clock).await, Some(Err("unclear")));
    assert!(keys.believes(MAX_AGE) && !keys.believes(MAX_AGE + NS));
}

/// A cache between gives what the issuer said earlier: that is no news.
#[tokio::test]
async fn older_keys_never_take_the_place_of_newer_ones() {
    let (keys, clock, hand) = start();
    keys.begin(clock.mono());
    keys.fetched(set(&["ES384"]), clock.mono(), Duration::ZERO);
    hand.advance(SECOND);
    keys.fetched(set(&["ES256"]), clock.mono(), SECOND + NS);
    assert!(keys.believed(&clock).await.unwrap().knows("ES384"));
    keys.fetched(set(&["ES256"]), clock.mono(), SECOND);
    assert!(keys.believed(&clock).await.unwrap().knows("ES256"));
}

/// No key that verifies anything: nobody comes in by what was there before, and nobody is told that they may not.
#[tokio::test]
async fn a_set_without_keys_is_an_outage() {
    let (keys, clock, _) = start();
    keys.begin(clock.mono());
    keys.fetched(set(&["ES256"]), clock.mono(), Duration::ZERO);
    keys.fetched(KeySet::default(), clock.mono(), Duration::ZERO);
    assert_eq!(believed(&keys, &clock).await, Some(Err("unclear")));
}

async fn renewed(keys: &Keys, known: &Arc<Fetched>, clock: &Clock) -> Option<Result<bool, &'static str>> {
    Some(match at_once(keys.renewed(known, clock)).await? {
        Renewed::Keys(keys) => Ok(keys.knows("ES384")),
        Renewed::Outage(outage) => Err(name(&outage)),
    })
}

/// A token names a key that is not known: keys of the last ten seconds are new enough to say that there is none; older ones
/// are fetched once more, and if that fails nobody can say.
#[tokio::test]
async fn an_unknown_key_has_newer_ones_fetched() {
    let (keys, clock, hand) = start();
    keys.begin(clock.mono());
    keys.fetched(set(&["ES256"]), clock.mono(), Duration::ZERO);
    let known = keys.believed(&clock).await.unwrap();
    hand.advance(Duration::from_secs(10) - NS);
    assert_eq!(renewed(&keys, &known, &clock).await, Some(Ok(false)));
    assert!(at_once(keys.wanted.notified()).await.is_none(), "nothing was asked for");
    hand.advance(NS);
    assert_eq!(renewed(&keys, &known, &clock).await, None);
    assert!(at_once(keys.wanted.notified()).await.is_some(), "newer ones are wanted");
    keys.begin(clock.mono());
    assert_eq!(renewed(&keys, &known, &clock).await, None);
    keys.failed(reset());
    assert_eq!(renewed(&keys, &known, &clock).await, Some(Err("failed")), "not tried again at once");
    hand.advance(Duration::from_secs(10));
    assert_eq!(renewed(&keys, &known, &clock).await, None);
    keys.begin(clock.mono());
    keys.fetched(set(&["ES256", "ES384"]), clock.mono(), Duration::ZERO);
    assert_eq!(renewed(&keys, &known, &clock).await, Some(Ok(true)));
}

/// Whoever waits is told by the fetch that began for them, and not by an earlier one that failed.
#[tokio::test]
async fn whoever_waits_for_newer_keys_gets_them_or_an_outage() {
    for succeeds in [true, false] {
        let (keys, clock, hand) = start();
        keys.begin(clock.mono());
        keys.fetched(set(&["ES256"]), clock.mono(), Duration::ZERO);
        let known = keys.believed(&clock).await.unwrap();
        hand.advance(Duration::from_secs(20));
        let waiting = renewed_to_the_end(&keys, &known, &clock);
        let fetching = async {
            keys.wanted.notified().await;
            keys.begin(clock.mono());
            match succeeds {
                true => keys.fetched(set(&["ES256", "ES384"]), clock.mono(), Duration::ZERO),
                false => keys.failed(Trouble::Unusable),
            }
        };
        let (came, ()) = tokio::join!(waiting, fetching);
        assert_eq!(came, if succeeds { Ok(true) } else { Err("unclear") });
    }
}

async fn renewed_to_the_end(keys: &Keys, known: &Arc<Fetched>, clock: &Clock) -> Result<bool, &'static str> {
    match keys.renewed(known, clock).await {
        Renewed::Keys(keys) => Ok(keys.knows("ES384")),
        Renewed::Outage(outage) => Err(name(&outage)),
    }
}
