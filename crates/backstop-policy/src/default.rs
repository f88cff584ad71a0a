//! Values of keys that are not written. The tables' documentation states the same ones in words.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub(crate) const NAME: &str = "backstop";
pub(crate) const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
/// In per mille.
pub(crate) const EXERCISE: u16 = 10;
pub(crate) const TRACE_SAMPLE: u16 = 100;
pub(crate) const DRAIN: Duration = Duration::from_secs(10);
pub(crate) const BUFFER_MEMORY: u64 = 256 << 20;

pub(crate) const HEAD_BYTES: u64 = 32 << 10;
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(10);
pub(crate) const BODY_BYTES: u64 = 1 << 20;
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
pub(crate) const REPLY_TIME: Duration = Duration::from_secs(30);

pub(crate) const STORE_PATH: &str = "backstop-data";
pub(crate) const STORE_MEMORY: u64 = 64 << 20;
pub(crate) const STORE_DISK: u64 = 1 << 30;

pub(crate) const CONNECTIONS: u32 = 64;
pub(crate) const QUEUE: Duration = Duration::ZERO;
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
pub(crate) const IDLE: Duration = Duration::from_secs(30);

pub(crate) const WINDOW: Duration = Duration::from_secs(10);
pub(crate) const MIN_CALLS: u32 = 20;
pub(crate) const FAILURES: u16 = 500;
pub(crate) const SLOW_SHARE: u16 = 600;
/// Where no route asks the dependency.
pub(crate) const SLOW: Duration = Duration::from_millis(500);
pub(crate) const OPEN: Duration = Duration::from_secs(5);
pub(crate) const OPEN_MAX: Duration = Duration::from_secs(30);
pub(crate) const PROBES: u32 = 3;

pub(crate) const START: u16 = 100;
pub(crate) const UP: u32 = 1500;
pub(crate) const BACK: u32 = 700;
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Limits of a signal: shares in per mille, factors in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) errors: u16,
    pub(crate) p95: u32,
    pub(crate) db_wait: Duration,
    pub(crate) in_use: u16,
    pub(crate) backlog: Duration,
}

pub(crate) const GREEN: Limits = Limits {
    errors: 10,
    p95: 3000,
    db_wait: Duration::from_millis(5),
    in_use: 700,
    backlog: Duration::from_secs(1),
};
pub(crate) const RED: Limits = Limits {
    errors: 50,
    p95: 7000,
    db_wait: Duration::from_millis(20),
    in_use: 900,
    backlog: Duration::from_secs(5),
};

pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(5);
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
pub(crate) const ATTEMPTS: u32 = 2;

pub(crate) const BUFFER: u64 = 1 << 20;
pub(crate) const GONE: [u16; 2] = [404, 410];

pub(crate) const EXPOSE: [&str; 2] = ["backstop", "retry-after"];
pub(crate) const ALLOW: [u16; 2] = [200, 204];
pub(crate) const DENY: [u16; 2] = [401, 403];
pub(crate) const SEND: [&str; 2] = ["authorization", "cookie"];

/// Or a quarter of `max_age`, if that is less.
pub(crate) const KEYS_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const CLAIM: &str = "sub";

pub(crate) const CACHE_TIMEOUT: Duration = Duration::from_millis(20);
pub(crate) const CACHE_CONNECT: Duration = Duration::from_millis(250);
pub(crate) const CACHE_PREFIX: &str = "backstop";
pub(crate) const CACHE_OPEN: Duration = Duration::from_secs(1);
/// What a cache's value holds beside the content: fields and key.
pub(crate) const CACHE_HEAD_BYTES: u64 = 64 << 10;
pub(crate) const FILL_DEADLINE: Duration = Duration::from_secs(2);
pub(crate) const FILL_WAITERS: u32 = 100;

pub(crate) const OPERATION_HEADER: &str = "idempotency-key";
pub(crate) const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// Five queries per second.
pub(crate) const STATUS_INTERVAL: Duration = Duration::from_millis(200);
pub(crate) const STATUS_CONCURRENCY: u32 = 4;
pub(crate) const CONFIRMATIONS: u32 = 3;
pub(crate) const SPACING: Duration = Duration::from_secs(60);
pub(crate) const SAMPLE: u16 = 10;
pub(crate) const VERIFY_FIRST: Duration = Duration::from_secs(1);
pub(crate) const VERIFY_FACTOR: u32 = 2000;
pub(crate) const VERIFY_CAP: Duration = Duration::from_secs(60);
/// Or four fifths of what the upstream remembers, if that is less.
pub(crate) const VERIFY_DEADLINE: Duration = backstop_engine::operation::VERIFY_FOR;
pub(crate) const ATTENTION_POLL: Duration = Duration::from_secs(15 * 60);
pub(crate) const EFFECT_BODY_BYTES: u64 = 256 << 10;
pub(crate) const KEEP_BODY: Duration = Duration::from_secs(24 * 3600);
pub(crate) const KEEP_TOMBSTONE: Duration = Duration::from_secs(30 * 24 * 3600);
