//! What an operator decides about a cache.

use std::fmt;
use std::time::Duration;

use crate::upstream::Address;

/// How one cache is reached, and what it may cost.
#[derive(Clone)]
pub struct CacheSettings {
    /// Where it is. They are tried one after the other when a connection is opened; the one that answered last is tried
    /// first.
    pub addresses: Vec<Address>,
    /// The database that is selected. Default 0, which sends no `SELECT`.
    pub database: u32,
    /// The name for `AUTH`, if the server knows users.
    pub username: Option<Box<str>>,
    /// The password for `AUTH`. Without it, nothing is sent, whatever the name.
    pub password: Option<Box<str>>,
    /// How long one command may take, with the wait for a connection.
    pub timeout: Duration,
    /// The longest that establishing a connection to one socket address may take, until the server has answered on it.
    pub connect: Duration,
    /// What every key begins with. Gateways with the same prefix share their copies. Default `backstop`.
    pub prefix: Box<str>,
    /// Commands under way on one thread at most, each of which may hold one value that is stored. What is more is refused
    /// at once. Default 64.
    pub max_in_flight: u32,
    /// The largest value that is stored, or read, in bytes. Default 1 MiB and 64 KiB.
    pub value_bytes: usize,
}

impl CacheSettings {
    /// Defaults for everything that has one.
    pub fn new(addresses: Vec<Address>, timeout: Duration, connect: Duration) -> Self {
        Self {
            addresses,
            database: 0,
            username: None,
            password: None,
            timeout,
            connect,
            prefix: "backstop".into(),
            max_in_flight: 64,
            value_bytes: (1 << 20) + (64 << 10),
        }
    }
}

impl fmt::Debug for CacheSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheSettings")
            .field("addresses", &self.addresses)
            .field("database", &self.database)
            .field("username", &self.username)
            // What is printed is kept somewhere.
            .field("password", &self.password.as_ref().map(|_| "..."))
            .field("timeout", &self.timeout)
            .field("connect", &self.connect)
            .field("prefix", &self.prefix)
            .field("max_in_flight", &self.max_in_flight)
            .field("value_bytes", &self.value_bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let second = Duration::from_secs(1);
        let mut settings = CacheSettings::new(vec![Address::new("127.0.0.1", 6379)], second, second);
        settings.password = Some("hunter2".into());
        let printed = format!("{settings:?}");
        assert!(printed.contains("password: Some(\"...\")") && !printed.contains("hunter2"), "{printed}");
    }
}
