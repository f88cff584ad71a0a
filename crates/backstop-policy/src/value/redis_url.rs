//! Where a Redis or Valkey server is: `redis://127.0.0.1:6379/0`.

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::value::{Address, Url};

const PORT: u16 = 6379;
const DATABASES: u32 = 65_536;

/// The address of a cache, and its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    /// Where it listens.
    pub(crate) address: Address,
    /// The database.
    pub(crate) database: u32,
}

impl RedisUrl {
    /// What it is called: no dependency's name has its form.
    pub(crate) fn name(&self) -> Box<str> {
        format!("{}/{}", self.address, self.database).into()
    }
}

impl Scalar for RedisUrl {
    const EXPECTED: &'static str = "a URL such as \"redis://127.0.0.1:6379\"";
    const NAME: &'static str = "`redis://` URL";
    const LATER: &'static [(&'static str, &'static str)] = &[];
    const PATTERN: Option<&'static str> = Some("^redis://[^/?#@]+(/[0-9]*)?$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::CacheUrl, message);
        if text.starts_with("rediss://") {
            return Err(Fault::new(Code::NotAvailable, "TLS to caches: not available in this version")
                .part(0.."rediss".len())
                .help("use `redis://` on a trusted network, or a local TLS sidecar"));
        }
        let Some(rest) = text.strip_prefix("redis://") else {
            let fault = invalid(format!("`{text}` does not begin with `redis://`"));
            return Err(if text.contains("://") { fault } else { fault.instead(format!("redis://{text}")) });
        };
        if rest.contains('@') {
            return Err(Fault::new(
                Code::NotAvailable,
                "a password for a cache: not available in this version",
            )
            .help("give it a network of its own that only gateways reach"));
        }
        if let Some(mark) = text.find(['?', '#']) {
            return Err(
                invalid("the URL of a cache has no query or fragment".to_owned()).part(mark..text.len())
            );
        }
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match (database, database.parse::<u32>()) {
            ("", _) => 0,
            (_, Ok(number)) if number < DATABASES => number,
            _ => {
                return Err(invalid(format!("`{database}` is no number of a database"))
                    .part(text.len() - database.len()..text.len())
                    .help("write a number such as `/0`, or leave it out"));
            }
        };
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:{PORT}") };
        let Url(address) = Url::parse(&format!("http://{authority}"))
            .map_err(|_| invalid(format!("`{text}` names no host and port")))?;
        Ok(RedisUrl { address, database })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_host_a_port_and_a_database() {
        let name =
            |text: &str| RedisUrl::parse(text).map(|url| url.name().into_string()).map_err(|f| f.message);
        assert_eq!(name("redis://127.0.0.1:6379"), Ok("127.0.0.1:6379/0".to_owned()));
        assert_eq!(name("redis://cache"), Ok("cache:6379/0".to_owned()));
        assert_eq!(name("redis://[::1]:7000/3"), Ok("[::1]:7000/3".to_owned()));
        assert_eq!(RedisUrl::parse("cache:6379").unwrap_err().instead.as_deref(), Some("redis://cache:6379"));
        for bad in [
            "",
            "http://x",
            "redis://",
            "redis://x/y",
            "redis://x/65536",
            "redis://x:0",
            "redis://x?a=b",
            "rediss://x",
            "redis://user:secret@x",
            "redis://x/-1",
        ] {
            assert!(RedisUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
