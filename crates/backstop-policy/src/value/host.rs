//! Hosts that a route answers for, and the host that a dependency is sent.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// A host that a route answers for, in lower case and without a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Exactly this host, such as `shop.example` or `[::1]`.
    Exact(Box<str>),
    /// Every host with at least one label before this suffix, which begins with a dot: `.example` for `*.example`.
    Suffix(Box<str>),
}

impl HostPattern {
    /// Whether it covers this host, which must be in lower case and without a port.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            HostPattern::Exact(exact) => host == &**exact,
            HostPattern::Suffix(suffix) => host.len() > suffix.len() && host.ends_with(&**suffix),
        }
    }
}

impl Scalar for HostPattern {
    const EXPECTED: &'static str = "a host such as \"shop.example\" or \"*.shop.example\"";
    const NAME: &'static str = "host";

    fn parse(text: &str) -> Result<Self, Fault> {
        let lower = text.to_ascii_lowercase();
        if let Some(suffix) = lower.strip_prefix("*.") {
            check_name(suffix, text, 2)?;
            return Ok(HostPattern::Suffix(format!(".{suffix}").into()));
        }
        if let Some((host, port)) = lower.rsplit_once(':')
            && !host.ends_with(':')
            && !host.contains(':')
            && port.bytes().all(|b| b.is_ascii_digit())
        {
            return Err(Fault::new(Code::Host, "a route's host is written without a port")
                .part(host.len()..text.len())
                .instead(host));
        }
        if !is_ip_literal(&lower) {
            check_name(&lower, text, 0)?;
        }
        Ok(HostPattern::Exact(lower.into()))
    }
}

/// The `Host` that a dependency is sent: a host, with a port if need be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FixedHost(pub(crate) Box<str>);

impl Scalar for FixedHost {
    const EXPECTED: &'static str = "a host such as \"catalog.internal\" or \"catalog.internal:8080\"";
    const NAME: &'static str = "host, maybe with a port";

    fn parse(text: &str) -> Result<Self, Fault> {
        if is_open(text) {
            check_name(text, text, 0)?;
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        if let Some(port) = port
            && !port.parse::<u16>().is_ok_and(|port| port > 0)
        {
            return Err(
                Fault::new(Code::Host, format!("`{port}` is not a port")).part(host.len() + 1..text.len())
            );
        }
        if !is_ip_literal(host) {
            check_name(host, text, 0)?;
        }
        Ok(FixedHost(text.to_ascii_lowercase().into()))
    }
}

/// `[::1]`.
pub(super) fn is_ip_literal(host: &str) -> bool {
    host.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
}

/// What to do about a bracket that [`is_open`].
pub(super) const CLOSE: &str = "write `]` after the IPv6 address, before the port";

/// Whether an IPv6 address begins that never ends, such as `[::1`.
pub(super) fn is_open(authority: &str) -> bool {
    authority.starts_with('[') && !authority.contains(']')
}

/// Whether this is a host name or an IPv4 address: labels of letters, digits, `-` and `_`, in ASCII.
pub(super) fn is_name(host: &str) -> bool {
    host.len() <= 253
        && host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

fn check_name(host: &str, text: &str, offset: usize) -> Result<(), Fault> {
    if is_name(host) {
        return Ok(());
    }
    if is_open(host) {
        return Err(Fault::new(Code::Host, format!("the bracket of `{text}` is not closed")).help(CLOSE));
    }
    let fault = Fault::new(Code::Host, format!("`{text}` is not a host")).part(offset..text.len());
    Err(if host.contains('*') {
        fault.help("only a whole first label may be a wildcard: `*.shop.example`")
    } else if host.contains('/') {
        fault.help("write the host alone, without scheme and path")
    } else if !host.is_ascii() {
        fault.help("write an international name in its ASCII form (`xn--...`), as browsers send it")
    } else {
        fault.help("a host is labels of letters, digits and `-`, joined by dots")
    })
}
