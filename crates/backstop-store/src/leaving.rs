//! What the file may still hold although the index no longer knows it.
//!
//! A record leaves the index at once and the file later: deleted when convenient, or durably after a withdrawal. Until that is
//! durable a crash brings it back, so whoever withdraws it meanwhile is not told that there is nothing. Everybody else is:
//! records leave all the time, and a withdrawal of what never had a copy waits for none of them.
//!
//! What leaves is known by the hash of its host and path. Two with the same hash are taken for each other: then somebody
//! waits who need not. Of too many, and of what cannot be told, only that there is something is known.

use std::collections::HashSet;

/// Hosts and paths that are told apart: 0.3 MiB or less.
const MOST_SITES: usize = 16_384;

/// A record that left the index, and the hash of its host and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) id: u64,
    pub(crate) site: u64,
}

/// What is leaving.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    sites: HashSet<u64>,
    /// It may be anything.
    may_be_any: bool,
}

impl Leaving {
    /// Something of this host and path is leaving; `None` may be any.
    pub(crate) fn add(&mut self, site: Option<u64>) {
        if let Some(site) = site.filter(|_| !self.may_be_any && self.sites.len() < MOST_SITES) {
            self.sites.insert(site);
        } else if !self.may_be_any && site.is_none_or(|site| !self.sites.contains(&site)) {
            *self = Self { sites: HashSet::new(), may_be_any: true };
        }
    }

    /// So is all of that.
    pub(crate) fn append(&mut self, other: Self) {
        if other.may_be_any {
            self.add(None);
        } else if self.sites.is_empty() && !self.may_be_any {
            *self = other;
        } else {
            other.sites.into_iter().for_each(|site| self.add(Some(site)));
        }
    }

    /// Whether something of this host and path may be leaving; `None` is anything at all.
    pub(crate) fn may_hold(&self, site: Option<u64>) -> bool {
        self.may_be_any || site.map_or(!self.sites.is_empty(), |site| self.sites.contains(&site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sites: impl IntoIterator<Item = u64>) -> Leaving {
        let mut leaving = Leaving::default();
        sites.into_iter().for_each(|site| leaving.add(Some(site)));
        leaving
    }

    #[test]
    fn what_leaves_is_told_from_everything_else() {
        let nothing = Leaving::default();
        assert!(!nothing.may_hold(Some(1)) && !nothing.may_hold(None));
        let mut some = of([1, 2]);
        assert!(some.may_hold(Some(1)) && some.may_hold(None) && !some.may_hold(Some(3)));
        some.append(of([3]));
        assert!(some.may_hold(Some(3)) && some.may_hold(Some(1)) && !some.may_hold(Some(4)));
        some.add(None);
        assert!(some.may_hold(Some(4)));
    }

    #[test]
    fn of_too_many_none_is_told_from_another() {
        let most = MOST_SITES as u64;
        let mut full = of(0..most);
        full.add(Some(0));
        assert!(!full.may_hold(Some(most)), "the same again is not one more");
        full.add(Some(most));
        assert!(full.may_hold(Some(u64::MAX)) && full.sites.capacity() == 0);
        let mut joined = of(0..most);
        joined.append(of([most]));
        assert!(joined.may_hold(Some(u64::MAX)));
    }
}
