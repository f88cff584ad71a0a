//! What an operator decides about the connections to one dependency.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use backstop_engine::admission::Excess;

use super::network::Network;

/// How one dependency is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it is. The one with the least calls under way is asked; another only if nothing was sent.
    pub addresses: Vec<Address>,
    /// Open connections at most, over all threads: those in use, those at rest, and those that are being opened or
    /// closed. The limit that hands out [`Attempt::places`](backstop_engine::flow::Attempt::places) has the same size.
    pub connections: u32,
    /// Whether a call may open a connection beyond that number (while a policy is only observed) or waits for one.
    pub excess: Excess,
    /// The longest that establishing a connection to one socket address may take.
    pub connect: Duration,
    /// How long a connection may rest unused. Default 30 s; shorter than the dependency's own limit is best.
    pub idle: Duration,
    /// How long an address that could not be connected to is passed over while there is another. Default 1 s.
    pub rest: Duration,
    /// After how long a name is looked up again. Default 5 s. What was found before goes on being used meanwhile, and
    /// for as long as looking up fails.
    pub refresh: Duration,
    /// The longest head of an answer, in bytes. Default 32 KiB.
    pub head_bytes: usize,
    /// The most field lines in an answer's head. Default 100; any other number costs an allocation per answer.
    pub fields: usize,
    /// The largest buffer for reading from, and for writing to, one connection. Default 64 KiB, never below 8 KiB.
    pub buffer_bytes: usize,
    /// The most bytes of an abandoned call's answer that are read in order to keep its connection. Default 64 KiB.
    pub drain_bytes: u64,
    /// What they are opened on. Default the system's network.
    pub network: Network,
}

impl Settings {
    /// Defaults for everything that has one.
    pub fn new(addresses: Vec<Address>, connections: u32, connect: Duration) -> Self {
        Self {
            addresses,
            connections,
            excess: Excess::Refuse,
            connect,
            idle: Duration::from_secs(30),
            rest: Duration::from_secs(1),
            refresh: Duration::from_secs(5),
            head_bytes: 32 * 1024,
            fields: 100,
            buffer_bytes: 64 * 1024,
            drain_bytes: 64 * 1024,
            network: Network::System,
        }
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IP address, which is never looked up.
    Literal(SocketAddr),
    /// A name.
    Name {
        /// The host.
        host: Box<str>,
        /// The port.
        port: u16,
    },
}

impl Address {
    /// From a host as it stands in a URL: a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn new(host: &str, port: u16) -> Self {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        match bare.parse::<IpAddr>() {
            Ok(ip) => Self::Literal(SocketAddr::new(ip, port)),
            Err(_) => Self::Name { host: host.into(), port },
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(literal: SocketAddr) -> Self {
        Self::Literal(literal)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_need_looking_up() {
        let literal = |text: &str| Address::Literal(text.parse().expect("a socket address"));
        assert_eq!(Address::new("127.0.0.1", 80), literal("127.0.0.1:80"));
        assert_eq!(Address::new("[::1]", 80), literal("[::1]:80"));
        assert_eq!(Address::new("::1", 80), literal("[::1]:80"));
        assert_eq!(Address::new("catalog.internal", 80).to_string(), "catalog.internal:80");
    }
}
