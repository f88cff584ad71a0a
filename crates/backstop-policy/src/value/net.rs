//! Addresses to listen on, URLs of dependencies, ranges of peers.

use std::net::{IpAddr, SocketAddr};

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::value::host;

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

impl Scalar for Listen {
    const EXPECTED: &'static str = "an address such as \"127.0.0.1:8080\"";
    const NAME: &'static str = "IP address and port";
    const LATER: &'static [(&'static str, &'static str)] = &[("tls", "TLS to clients")];

    fn parse(text: &str) -> Result<Self, Fault> {
        if let Ok(address) = text.parse() {
            return Ok(Listen(address));
        }
        let fault = Fault::new(Code::Address, format!("`{text}` is not an IP address with a port"));
        Err(match text.rsplit_once(':') {
            Some(("" | "*", port)) if port.parse::<u16>().is_ok() => fault
                .help("`127.0.0.1` is this machine only, `0.0.0.0` every IPv4 and `[::]` every address")
                .instead(format!("0.0.0.0:{port}")),
            Some(("localhost", port)) if port.parse::<u16>().is_ok() => {
                fault.instead(format!("127.0.0.1:{port}"))
            }
            Some((host, port))
                if port.parse::<u16>().is_ok() && host.parse::<std::net::Ipv6Addr>().is_ok() =>
            {
                fault.instead(format!("[{host}]:{port}"))
            }
            _ if text.parse::<IpAddr>().is_ok() => fault.help("add a port, such as `:8080`"),
            _ => fault.help(
                "write an address such as `127.0.0.1:8080` or `[::1]:8080`; names are not resolved here",
            ),
        })
    }
}

/// Where a dependency listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A name, an IPv4 address, or an IPv6 address without brackets; in lower case.
    pub host: Box<str>,
    /// The port. Default 80.
    pub port: u16,
}

impl std::fmt::Display for Address {
    /// `host:port`, IPv6 in brackets: usable as `Host` and for connecting.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The URL of a dependency: scheme, host and port only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url(pub(crate) Address);

impl Scalar for Url {
    const EXPECTED: &'static str = "a URL such as \"http://127.0.0.1:9001\"";
    const NAME: &'static str = "`http://` URL";
    const LATER: &'static [(&'static str, &'static str)] = &[("tls", "TLS to dependencies (`tls`)")];
    const PATTERN: Option<&'static str> = Some("^http://[^/?#@]+/?$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::Url, message);
        if text.starts_with("https://") {
            return Err(Fault::new(Code::NotAvailable, "TLS to dependencies: not available in this version")
                .part(0.."https".len())
                .help("use `http://` on a trusted network, or a local TLS sidecar"));
        }
        let Some(rest) = text.strip_prefix("http://") else {
            let fault = invalid(format!("`{text}` does not begin with `http://`"));
            return Err(if text.contains("://") { fault } else { fault.instead(format!("http://{text}")) });
        };
        let start = "http://".len();
        let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(authority_len);
        if !matches!(tail, "" | "/") {
            return Err(invalid("the URL of a dependency has no path, query or fragment".to_owned())
                .part(start + authority_len..text.len())
                .help("requests keep their own path; `strip_prefix` of a route shortens it")
                .instead(format!("http://{authority}")));
        }
        if authority.contains('@') {
            return Err(invalid("the URL of a dependency holds no user or password".to_owned())
                .part(start..start + authority_len)
                .help("set an `authorization` header in the route's `request_headers`"));
        }
        if host::is_open(authority) {
            return Err(invalid(format!("the bracket of `{authority}` is not closed"))
                .part(start..start + authority_len)
                .help(host::CLOSE));
        }
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (authority, None),
        };
        let port = match port.map(str::parse::<u16>) {
            None => 80,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => {
                return Err(invalid("a port lies between 1 and 65535".to_owned())
                    .part(start + name.len() + 1..start + authority_len));
            }
        };
        if !(host::is_ip_literal(name) || host::is_name(name)) {
            return Err(invalid(format!("`{name}` is not a host")).part(start..start + name.len()).help(
                "write a name, an IPv4 address, or an IPv6 address in brackets, then `:` and the port",
            ));
        }
        let host = name.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase().into();
        Ok(Url(Address { host, port }))
    }
}

/// The bits before an IPv4 address that is mapped into IPv6 (RFC 4291 section 2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

/// A range of IP addresses, such as `10.0.0.0/8`; a single address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRange {
    /// The first address.
    pub network: IpAddr,
    /// How many leading bits are the same: 0 to 32, or to 128 for IPv6.
    pub prefix: u8,
}

impl IpRange {
    /// Whether the address lies in the range. IPv4 addresses mapped into IPv6 count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
            IpAddr::V6(v6) => (v6.to_bits(), 128),
        };
        let ((network, width), (address, other)) = (bits(self.network), bits(address.to_canonical()));
        width == other && (network ^ address).checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
    }

    /// Its first address.
    pub const fn first(&self) -> IpAddr {
        self.network
    }

    fn is_first(&self) -> bool {
        match self.network {
            IpAddr::V4(v4) => v4.to_bits().checked_shl(u32::from(self.prefix)).unwrap_or(0) == 0,
            IpAddr::V6(v6) => v6.to_bits().checked_shl(u32::from(self.prefix)).unwrap_or(0) == 0,
        }
    }
}

impl Scalar for IpRange {
    const EXPECTED: &'static str = "an IP address or range such as \"10.0.0.0/8\"";
    const NAME: &'static str = "IP address or range";

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::IpRange, message);
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let Ok(written) = address.parse::<IpAddr>() else {
            return Err(invalid(format!("`{text}` is not an IP address or range"))
                .help("write `10.0.0.7`, `10.0.0.0/8` or `fd00::/8`; names are not resolved here"));
        };
        let widest = if written.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix.map(str::parse::<u8>) {
            None => widest,
            Some(Ok(prefix)) if prefix <= widest => prefix,
            Some(_) => {
                return Err(invalid(format!("the part after the slash lies between 0 and {widest}"))
                    .part(address.len() + 1..text.len()));
            }
        };
        // Peers count as IPv4 where theirs is mapped into IPv6, and so do ranges. A mapped address in a shorter prefix is
        // never the first one.
        let range = match written.to_canonical() {
            IpAddr::V4(v4) if written.is_ipv6() && prefix >= MAPPED_PREFIX => {
                IpRange { network: IpAddr::V4(v4), prefix: prefix - MAPPED_PREFIX }
            }
            _ => IpRange { network: written, prefix },
        };
        if !range.is_first() {
            return Err(invalid(format!("`{address}` is not the first address of a /{prefix}"))
                .help("clear the bits behind the prefix, or lengthen the prefix"));
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_they_should() {
        let range = |text: &str| IpRange::parse(text).map_err(|fault| fault.message);
        let contains = |text: &str, ip: &str| range(text).map(|r| r.contains(ip.parse().unwrap()));
        assert_eq!(contains("10.0.0.0/8", "10.255.0.1"), Ok(true));
        assert_eq!(contains("10.0.0.0/8", "11.0.0.1"), Ok(false));
        assert_eq!(contains("10.0.0.0/8", "::ffff:10.1.2.3"), Ok(true));
        assert_eq!(contains("0.0.0.0/0", "1.2.3.4"), Ok(true));
        assert_eq!(contains("0.0.0.0/0", "::1"), Ok(false));
        assert_eq!(contains("::/0", "::1"), Ok(true));
        assert_eq!(contains("fd00::/8", "fdff::1"), Ok(true));
        assert_eq!(contains("127.0.0.1", "127.0.0.2"), Ok(false));
        for (mapped, inside, outside) in [
            ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("::ffff:10.0.0.0/104", "10.255.0.1", "11.0.0.1"),
            ("::ffff:0:0/96", "1.2.3.4", "::1"),
        ] {
            assert_eq!(
                (contains(mapped, inside), contains(mapped, outside)),
                (Ok(true), Ok(false)),
                "{mapped}"
            );
            assert_eq!(contains(mapped, &format!("::ffff:{inside}")), Ok(true), "{mapped}");
        }
        for bad in [
            "::ffff:10.0.0.1/104",
            "::ffff:0:0/95",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "localhost",
            "::1/127",
            "",
        ] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn urls_are_host_and_port() {
        let url = |text: &str| Url::parse(text).map(|url| url.0.to_string()).map_err(|fault| fault.message);
        assert_eq!(url("http://catalog"), Ok("catalog:80".to_owned()));
        assert_eq!(url("http://[::1]:9001/"), Ok("[::1]:9001".to_owned()));
        for bad in
            ["", "catalog:80", "ftp://x", "http://", "http://x/y", "http://u@x", "http://x:0", "http://x:y"]
        {
            assert!(url(bad).is_err(), "{bad}");
        }
    }
}
