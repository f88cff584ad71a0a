//! What a copy is found by.
//!
//! The target (host, path, query) comes first, because a withdrawal names a target or a path and must reach every
//! variant below it. Then the route whose policy accepted the answer, then the partition: the further key parts that
//! the policy names (language, tenant, principal), already encoded by the caller.
//!
//! Everything is compared byte for byte and in full; equality never rests on a hash, except where that can only refuse
//! to store (the marks of withdrawals). Host names are case-insensitive,
//! so the caller passes them in lower case.

use std::fmt;

/// What a request addresses, and what a withdrawal reaches.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    site: Box<[u8]>,
    query: Option<Box<str>>,
}

impl Target {
    /// The target `host` (in lower case, with its port where one was given), `path` and `query` (without `?`).
    /// No query (`None`) and an empty one (`Some("")`) are two targets.
    pub fn new(host: &str, path: &str, query: Option<&str>) -> Self {
        Self { site: site(host, path), query: query.map(Box::from) }
    }

    /// The host.
    pub fn host(&self) -> &str {
        self.parts().0
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.parts().1
    }

    /// The query, if there is one.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Host and path as one unambiguous string of bytes.
    pub(crate) fn site(&self) -> &[u8] {
        &self.site
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.site.len() + self.query.as_ref().map_or(0, |query| query.len())
    }

    fn parts(&self) -> (&str, &str) {
        let text = self.site.get(4..).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        let length = self.site.first_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length) as usize);
        text.split_at_checked(length).unwrap_or_default()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.host(), self.path())?;
        self.query().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

/// The length of the host, the host, the path: no two pairs give the same bytes.
pub(crate) fn site(host: &str, path: &str) -> Box<[u8]> {
    let mut site = Vec::with_capacity(4 + host.len() + path.len());
    site.extend_from_slice(&u32::try_from(host.len()).unwrap_or(u32::MAX).to_be_bytes());
    site.extend_from_slice(host.as_bytes());
    site.extend_from_slice(path.as_bytes());
    site.into_boxed_slice()
}

/// What a copy is found by; its variants by `Vary` lie below one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CopyKey {
    /// What was asked for.
    pub target: Target,
    /// The name of the route whose policy accepted the answer.
    pub route: Box<str>,
    /// The policy's further key parts, encoded without ambiguity by the caller; empty where there are none.
    pub partition: Box<[u8]>,
}

impl CopyKey {
    /// Memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.target.bytes() + self.route.len() + self.partition.len()
    }
}

/// A key in one piece of memory, as the index keeps it: every part preceded by its length.
#[derive(Debug)]
pub(crate) struct PackedKey(Box<[u8]>);

impl PackedKey {
    pub(crate) fn new(key: &CopyKey) -> Self {
        let mut packed = Vec::with_capacity(20 + key.bytes());
        for part in parts(key) {
            packed.extend_from_slice(&part.0);
            packed.extend_from_slice(part.1);
        }
        Self(packed.into_boxed_slice())
    }

    /// Whether it is this key.
    pub(crate) fn is(&self, key: &CopyKey) -> bool {
        strip(&self.0, &parts(key)).is_some_and(<[u8]>::is_empty)
    }

    /// Whether it lies below this host and path, and has this query where one is given.
    pub(crate) fn is_below(&self, site: &[u8], query: Option<Option<&str>>) -> bool {
        let path = [part(Some(site))];
        strip(&self.0, &path).is_some_and(|rest| {
            query.is_none_or(|query| strip(rest, &[part(query.map(str::as_bytes))]).is_some())
        })
    }

    /// The key.
    pub(crate) fn unpack(&self) -> Option<CopyKey> {
        let mut rest = &*self.0;
        let (site, query) = (take(&mut rest)??, take(&mut rest)?);
        let (route, partition) = (take(&mut rest)??, take(&mut rest)??);
        let query = query.map(std::str::from_utf8).transpose().ok()?;
        Some(CopyKey {
            target: Target { site: site.into(), query: query.map(Box::from) },
            route: std::str::from_utf8(route).ok()?.into(),
            partition: partition.into(),
        })
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// A length, or that there is nothing, and what it is the length of.
type Part<'a> = ([u8; 4], &'a [u8]);

const ABSENT: [u8; 4] = u32::MAX.to_be_bytes();

fn part(bytes: Option<&[u8]>) -> Part<'_> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX - 1).to_be_bytes();
    (bytes.map_or(ABSENT, length), bytes.unwrap_or_default())
}

fn parts(key: &CopyKey) -> [Part<'_>; 4] {
    let query = key.target.query().map(str::as_bytes);
    [part(Some(key.target.site())), part(query), part(Some(key.route.as_bytes())), part(Some(&key.partition))]
}

/// What follows these parts, if they are there.
fn strip<'a>(packed: &'a [u8], parts: &[Part<'_>]) -> Option<&'a [u8]> {
    parts.iter().try_fold(packed, |rest, (length, bytes)| rest.strip_prefix(length)?.strip_prefix(*bytes))
}

/// The next part; within, whether it is there.
fn take<'a>(packed: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, rest) = packed.split_first_chunk::<4>()?;
    if *length == ABSENT {
        *packed = rest;
        return Some(None);
    }
    let (bytes, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *packed = rest;
    Some(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_gives_back_its_parts() {
        let target = Target::new("shop.example:8080", "/products/42", Some("a=1"));
        assert_eq!(target.host(), "shop.example:8080");
        assert_eq!(target.path(), "/products/42");
        assert_eq!(target.query(), Some("a=1"));
        assert_eq!(format!("{target:?}"), "shop.example:8080/products/42?a=1");
    }

    #[test]
    fn host_and_path_never_run_into_each_other() {
        assert_ne!(Target::new("ab", "c", None), Target::new("a", "bc", None));
        assert_ne!(Target::new("a", "/", None), Target::new("a", "/", Some("")));
    }

    #[test]
    fn a_packed_key_is_itself_and_no_other() {
        let key = |host: &str, path: &str, query, route: &str, partition: &[u8]| CopyKey {
            target: Target::new(host, path, query),
            route: route.into(),
            partition: partition.into(),
        };
        let keys = [
            key("h", "/p", None, "r", b""),
            key("h", "/p", Some(""), "r", b""),
            key("h", "/p", Some("q"), "r", b""),
            key("h", "/p", None, "rx", b""),
            key("h", "/p", None, "r", b"x"),
            key("h/", "p", None, "r", b""),
            key("h", "/px", None, "r", b""),
        ];
        for (a, one) in keys.iter().enumerate() {
            let packed = PackedKey::new(one);
            assert_eq!(packed.unpack().as_ref(), Some(one));
            for (b, other) in keys.iter().enumerate() {
                assert_eq!(packed.is(other), a == b, "{one:?} {other:?}");
                let (site, query) = (other.target.site(), other.target.query());
                assert_eq!(packed.is_below(site, None), one.target.site() == site);
                assert_eq!(packed.is_below(site, Some(query)), one.target == other.target);
            }
        }
    }
}
