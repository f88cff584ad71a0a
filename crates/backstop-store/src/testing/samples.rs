//! Moments, keys and copies to test with.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use backstop_engine::snapshot::{CopyFacts, OriginLimit};
use backstop_engine::time::{BootId, Mono, Now, Wall, WallTrust};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::copy::StoredCopy;
use crate::key::{CopyKey, Target};
use crate::marks::ReadTicket;

/// The moment `seconds` after the first boot.
pub fn now(seconds: u64) -> Now {
    now_in_boot(1, seconds)
}

/// The moment `seconds` after a boot.
pub fn now_in_boot(boot: u8, seconds: u64) -> Now {
    let passed = Duration::from_secs(seconds);
    Now {
        mono: Mono::from_ns(0).after(passed),
        wall: Wall::from_unix_ns(i64::from(boot) * 1_000_000_000_000_000_000).after(passed),
        boot: BootId([boot; 16]),
        wall_trust: WallTrust::Synchronised,
    }
}

/// A key of the route `r` on the host `h`.
pub fn key(path: &str, query: Option<&str>) -> CopyKey {
    CopyKey { target: Target::new("h", path, query), route: "r".into(), partition: Box::default() }
}

/// A copy that was read under `ticket`.
pub fn copy(body: impl Into<Bytes>, ticket: ReadTicket) -> StoredCopy {
    StoredCopy {
        facts: CopyFacts {
            observed_at: ticket.observed_at(Duration::ZERO),
            origin_limit: OriginLimit::Unlimited,
        },
        vary: Vec::new(),
        status: 200,
        headers: headers(&[("content-type", "text/plain"), ("etag", "\"1\"")]),
        body: body.into(),
    }
}

/// Header fields; what is not a field is left out.
pub fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    lines
        .iter()
        .filter_map(|(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?)))
        .collect()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread, as long as it takes.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}
