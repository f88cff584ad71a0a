//! Which requests a fault is for.

/// Which requests a fault is for: those of one key, or all; for ever, or so many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    key: Option<String>,
    times: Option<u32>,
}

impl Which {
    /// Every request, from now on.
    #[must_use]
    pub fn all() -> Self {
        Self { key: None, times: None }
    }

    /// The next `times` requests, whatever their key.
    #[must_use]
    pub fn next(times: u32) -> Self {
        Self { key: None, times: Some(times) }
    }

    /// Every request with this key.
    #[must_use]
    pub fn key(key: &str) -> Self {
        Self { key: Some(key.to_owned()), times: None }
    }

    /// Only the next `times` of them.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }
}

/// What was set, the last one asked first. One that is used up is gone, and the one set before it holds again.
#[derive(Debug)]
pub(super) struct Faults<F>(Vec<(Which, F)>);

impl<F: Clone> Faults<F> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn set(&mut self, which: Which, fault: F) {
        self.0.push((which, fault));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault for a request with this key; uses up one of its times.
    pub(super) fn choose(&mut self, key: &str) -> Option<F> {
        self.0.retain(|(which, _)| which.times != Some(0));
        let is_meant = |which: &Which| which.key.as_deref().is_none_or(|wanted| wanted == key);
        let (which, fault) = self.0.iter_mut().rev().find(|(which, _)| is_meant(which))?;
        which.times = which.times.map(|left| left.saturating_sub(1));
        Some(fault.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::{Faults, Which};

    #[test]
    fn the_last_one_holds_until_it_is_used_up() {
        let mut faults = Faults::new();
        faults.set(Which::all(), "all");
        faults.set(Which::next(2), "next");
        faults.set(Which::key("a").times(1), "a");
        let seen: Vec<_> = ["b", "a", "a", "a"].into_iter().map(|key| faults.choose(key)).collect();
        assert_eq!(seen, [Some("next"), Some("a"), Some("next"), Some("all")]);
        faults.clear();
        assert_eq!(faults.choose("a"), None);
    }

    #[test]
    fn of_one_key_and_no_times() {
        let mut faults = Faults::new();
        faults.set(Which::key("a"), 1);
        faults.set(Which::next(0), 2);
        assert_eq!((faults.choose("b"), faults.choose("a"), faults.choose("a")), (None, Some(1), Some(1)));
    }
}
