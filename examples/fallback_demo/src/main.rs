//! The whole policy of a public read in nine lines of output.
//!
//! A product description may be at most 60 s old when the catalog is unavailable, at most two reads may be in flight, and
//! an error that is not unavailability is never covered up. Each line is decided by the engine; only the clock is ours.

use std::time::Duration;

use backstop::builder;
use backstop::call::{Answered, Reads, Unanswered};
use backstop::clock::{Clock, ManualClock};
use backstop::engine::failure::FailureKind;
use backstop::engine::outcome::Source;
use backstop::engine::snapshot::ObservedAt;
use backstop::engine::time::{Mono, Now};

type Catalog = Reads<&'static str, &'static str, CatalogError>;
type Answer = Result<Answered<&'static str>, Unanswered<CatalogError>>;

/// How the catalog can fail.
#[derive(Debug)]
enum CatalogError {
    /// Temporarily: an earlier description is better than none.
    Unavailable,
    /// Its answer is not what we know: no earlier description may hide that.
    Schema,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (clock, hand) = Clock::manual(Now { mono: Mono::from_ns(1_000_000_000_000), ..Now::default() });
    let policy = builder::public_read("description", Duration::from_millis(300))
        .in_flight(2)
        .max_age(Duration::from_secs(60))
        .policy();
    let catalog: Catalog = Reads::new(clock, policy, 16, |error: &CatalogError| match error {
        CatalogError::Unavailable => Some(FailureKind::Connect),
        CatalogError::Schema => None,
    })?;

    show(&catalog.read("live", || async { Ok("live-description") }).await);

    keep(&catalog, &hand, "thirty", "saved-description", Age::Past(Duration::from_secs(30)));
    show(&catalog.read("thirty", unavailable).await);
    keep(&catalog, &hand, "sixty", "boundary", Age::Past(Duration::from_secs(60)));
    show(&catalog.read("sixty", unavailable).await);
    keep(&catalog, &hand, "older", "too-old", Age::Past(Duration::from_nanos(60_000_000_001)));
    show(&catalog.read("older", unavailable).await);
    keep(&catalog, &hand, "ahead", "from-the-future", Age::Ahead(Duration::from_secs(1)));
    show(&catalog.read("ahead", unavailable).await);
    show(&catalog.read("never-read", unavailable).await);

    // There is a copy, and it is not used: a schema error is not unavailability.
    show(&catalog.read("thirty", || async { Err(CatalogError::Schema) }).await);

    // Two reads hold both places; a third is refused at once. Then the places are free again.
    let innermost = || async { Ok(line(&catalog.read("third", || async { Ok("never-asked") }).await)) };
    let refused: Result<String, CatalogError> = nested(&catalog, innermost).await;
    emit(&refused.unwrap_or_else(|error| format!("{error:?}")));
    show(&catalog.read("live", || async { Ok("recovered") }).await);
    Ok(())
}

async fn unavailable() -> Result<&'static str, CatalogError> {
    Err(CatalogError::Unavailable)
}

/// Runs `inside` while two reads are in flight, one inside the other.
async fn nested<F>(catalog: &Catalog, inside: impl FnOnce() -> F) -> Result<String, CatalogError>
where
    F: Future<Output = Result<String, CatalogError>>,
{
    let mut line = None;
    let outer = catalog.read("first", || async {
        let inner = catalog.read("second", || async {
            line = Some(inside().await);
            Ok("second")
        });
        let _released = inner.await;
        Ok("first")
    });
    let _released = outer.await;
    line.unwrap_or(Err(CatalogError::Unavailable))
}

#[derive(Clone, Copy)]
enum Age {
    Past(Duration),
    Ahead(Duration),
}

/// Puts a description into the past or the future, as a read at that moment would have.
fn keep(catalog: &Catalog, hand: &ManualClock, key: &'static str, value: &'static str, age: Age) {
    let now = hand.now();
    let mono = match age {
        Age::Past(age) => now.mono.before(age),
        Age::Ahead(ahead) => now.mono.after(ahead),
    };
    catalog.keep(&key, ObservedAt::new(Now { mono, ..now }, Duration::ZERO), value);
}

fn show(answer: &Answer) {
    emit(&line(answer));
}

fn line(answer: &Answer) -> String {
    match answer {
        Ok(Answered { value, source, age }) => {
            let source: Source = *source;
            format!("Reply[value={value}, source={}, ageSeconds={}]", source.token(), age.as_secs())
        }
        Err(Unanswered::Rejected(reason)) => format!("rejected={}", reason.token()),
        Err(Unanswered::Propagated(CatalogError::Schema)) => "propagated=schema".to_owned(),
        Err(Unanswered::Propagated(CatalogError::Unavailable)) => "propagated=unavailable".to_owned(),
        Err(Unanswered::Failed(reason)) => format!("failed={}", reason.token()),
    }
}

#[expect(clippy::print_stdout, reason = "these lines are what the program is for")]
fn emit(line: &str) {
    println!("{line}");
}
