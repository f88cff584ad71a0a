//! The shop of these tests: one origin with a hundred products behind the gateway, and the load that asks for them.

use std::sync::Arc;
use std::time::Duration;

use backstop_lab::clock::monotonic_ns;
use backstop_lab::load::{Kind, Plan};
use backstop_lab::origin::{Behaviour, Limits, Matcher, Origin};

use crate::support::shop::HOST;
use crate::support::{Gateway, Policy, products};
use crate::timeline::Timeline;

/// Requests per second of most of these tests.
pub(crate) const THOUSAND: f64 = 1000.0;
/// After ten whole seconds the gateway knows what the usual rate is; it may begin within a second.
pub(crate) const KNOWN: Duration = Duration::from_secs(12);

/// Every product with this text, after so many milliseconds. A machine that is busy with other things adds some, and that
/// must not look like an origin that is many times slower than usual.
pub(crate) fn products_after_ms(text: &str, ms: u64) -> Behaviour {
    products(text).delay(Duration::from_millis(ms))
}

/// A gateway in front of one origin, by real time.
#[derive(Debug)]
pub(crate) struct Town {
    pub(crate) origin: Origin,
    pub(crate) gateway: Gateway,
    pub(crate) timeline: Arc<Timeline>,
}

impl Town {
    /// `dependency` are lines of the dependency, `read` those of its public read.
    pub(crate) async fn open(dependency: &str, read: &str) -> Self {
        let limits = Limits { records: 300_000, ..Limits::default() };
        let origin = Origin::builder().limits(limits).start().await.unwrap();
        origin.default(products("first"));
        let policy = Policy::empty()
            .gateway("in_flight = 4000")
            .dependency("catalog", origin.addr(), dependency)
            .route("description.public_read", &Policy::description(&format!("in_flight = 2000\n{read}")));
        let mut gateway = Gateway::start(&policy);
        HOST.clone_into(&mut gateway.host);
        Self { origin, gateway, timeline: Timeline::new() }
    }

    /// So many requests per second, for a hundred products in turn, each answer checked.
    pub(crate) fn plan(&self, rate: f64, lasts: Duration) -> Plan {
        let timeline = Arc::clone(&self.timeline);
        Plan::new(self.gateway.addr, rate, lasts)
            .kind(product_reads())
            .on_sample(move |sample| timeline.note(sample))
    }

    /// From now on the origin does this, whatever is asked. When that was, in the origin's own time.
    pub(crate) fn now_does(&self, behaviour: impl Into<Behaviour>) -> u64 {
        self.origin.on(Matcher::any(), behaviour);
        monotonic_ns()
    }

    /// When every recorded request reached the origin since `from_ns`, in order.
    pub(crate) fn arrivals(&self, from_ns: u64) -> Vec<u64> {
        let all = self.origin.requests();
        assert_eq!(self.origin.stats().unrecorded_requests, 0);
        let mut arrivals: Vec<u64> =
            all.iter().map(|request| request.arrived_ns).filter(|&ns| ns >= from_ns).collect();
        arrivals.sort_unstable();
        arrivals
    }
}

/// A hundred products in turn, in Spanish for tenant `a`. A right answer is the product that was asked for.
pub(crate) fn product_reads() -> Kind {
    Kind::get("/p/0")
        .targets((0..100).map(|id| format!("/p/{id}")))
        .header("Accept-Language", "es")
        .header("X-Tenant", "a")
        .check(|answer| answer.status() != 200 || answer.text().ends_with(r#""lang":"es"}"#))
}

/// How many of these moments lie in a span.
pub(crate) fn within(moments: &[u64], from_ns: u64, to_ns: u64) -> u64 {
    moments.iter().filter(|&&ns| (from_ns..to_ns).contains(&ns)).count() as u64
}
