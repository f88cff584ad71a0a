//! Values of keys that are not written. The tables' documentation states the same ones in words.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub(crate) const NAME: &str = "backstop";
pub(crate) const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
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

pub(crate) const BUFFER: u64 = 1 << 20;
pub(crate) const GONE: [u16; 2] = [404, 410];
