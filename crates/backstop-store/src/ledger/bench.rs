//! How fast a ledger is on this machine: what a sync costs, and how many operations one and many clients get through.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_engine::entropy::Entropy;
use backstop_engine::operation::{ClientKey, Fingerprint, Intent, KeptAnswer, OperationId, Scope};
use backstop_engine::time::Now;

use super::{Begun, Ledger, LedgerError};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchReport {
    /// Operations at once.
    pub clients: usize,
    /// Whole operations per second: an intent made durable, then an outcome.
    pub operations_per_s: f64,
    /// The median time until an intent is durable.
    pub intent_p50: Duration,
    /// The time until an intent is durable that one in a hundred exceeds.
    pub intent_p99: Duration,
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        write!(
            f,
            "{} clients: {:.0} operations/s, intent p50 {:.2} ms, p99 {:.2} ms",
            self.clients,
            self.operations_per_s,
            ms(self.intent_p50),
            ms(self.intent_p99)
        )
    }
}

/// Runs whole operations for so long, each client one after the other, on a ledger that keeps what this writes. `clock` tells
/// the time.
///
/// # Errors
/// If the ledger refuses anything.
pub fn bench(
    ledger: &dyn Ledger,
    clients: usize,
    lasting: Duration,
    entropy: u64,
    clock: &(dyn Fn() -> Now + Sync),
) -> Result<BenchReport, LedgerError> {
    let begun = clock().mono;
    let until = begun.after(lasting);
    let done = AtomicU64::new(0);
    let client = |number: usize| -> Result<Vec<Duration>, LedgerError> {
        let mut draws = Entropy::new(entropy.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9)));
        let mut waits = Vec::new();
        loop {
            let now = clock();
            if now.mono >= until {
                return Ok(waits);
            }
            // A name that came twice would be a wonder, and is left out.
            let Ok(Begun::New(intent)) = ledger.begin(operation(&mut draws), now).wait()? else { continue };
            let durable = clock().mono;
            waits.push(durable.since(now.mono).unwrap_or_default());
            let Ok(forwarding) = intent.forward(durable) else { continue };
            ledger.record(forwarding.succeeded(answer()), clock()).wait()?;
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let waits: Result<Vec<Vec<Duration>>, LedgerError> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let client = &client;
                scope.spawn(move || client(number))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(LedgerError::Closed))).collect()
    });
    let mut waits: Vec<Duration> = waits?.into_iter().flatten().collect();
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 100).copied().unwrap_or_default();
    let took = clock().mono.since(begun).unwrap_or_default().as_secs_f64();
    let operations_per_s = done.into_inner() as f64 / took.max(f64::EPSILON);
    Ok(BenchReport { clients, operations_per_s, intent_p50: at(50), intent_p99: at(99) })
}

fn operation(draws: &mut Entropy) -> Intent {
    let mut digest = || {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&draws.bits().to_be_bytes());
        }
        bytes
    };
    let (key, fingerprint, name) = (digest(), digest(), digest());
    let mut id = [0; 16];
    id.iter_mut().zip(name).for_each(|(to, from)| *to = from);
    Intent {
        id: OperationId::from_bytes(id),
        scope: Scope::from_bytes([0xbe; 32]),
        key: ClientKey::from_bytes(key),
        fingerprint: Fingerprint::from_bytes(fingerprint),
        route: "bench".into(),
        upstream_id: Some(Box::from(&b"bench-0123456789abcdef"[..])),
        captured: Vec::new(),
        deadline: Duration::from_secs(60),
        verify_for: Duration::from_secs(3600),
    }
}

fn answer() -> KeptAnswer {
    KeptAnswer {
        status: 201,
        fields: vec![("content-type".into(), Box::from(&b"application/json"[..]))],
        body: Some(vec![b'x'; 200].into()),
    }
}
