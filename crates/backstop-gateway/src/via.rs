//! `Via`: by it a gateway knows its own requests when they come back (RFC 9110 section 7.6.3).
//!
//! Two gateways in a row that were given no name would take each other for themselves. So one without a name of its own
//! goes by a pseudonym that is drawn when the process starts.

use std::hash::{BuildHasher, RandomState};

use http::header::VIA;
use http::{HeaderMap, HeaderValue, Version};

/// What the policy calls a gateway that was given no name.
const NO_NAME: &str = "backstop";

/// What the gateway of this name is called in `Via`.
pub(crate) fn pseudonym(name: &str) -> Box<str> {
    if name != NO_NAME {
        return name.into();
    }
    let drawn = RandomState::new().hash_one(std::process::id());
    format!("{NO_NAME}-{:08x}", drawn >> 32).into()
}

/// Whether the request was here before.
pub(crate) fn passed_here(headers: &HeaderMap, own: &str) -> bool {
    let lines = headers.get_all(VIA).iter().filter_map(|line| line.to_str().ok());
    let mut members = lines.flat_map(|line| line.split(','));
    members
        .any(|member| member.split_ascii_whitespace().nth(1).is_some_and(|by| by.eq_ignore_ascii_case(own)))
}

/// Says that the request passed here, by the protocol with which it came.
pub(crate) fn sign(headers: &mut HeaderMap, received: Version, own: &str) {
    let protocol = match received {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    if let Ok(via) = HeaderValue::try_from(format!("{protocol} {own}")) {
        headers.append(VIA, via);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_its_own_is_kept_and_none_is_drawn() {
        assert_eq!(&*pseudonym("edge"), "edge");
        assert_eq!(&*pseudonym("backstop-1"), "backstop-1");
        let drawn = pseudonym("backstop");
        let digits = drawn.strip_prefix("backstop-").unwrap();
        assert!(digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{drawn}");
        assert_ne!(pseudonym("backstop"), drawn);
    }
}
