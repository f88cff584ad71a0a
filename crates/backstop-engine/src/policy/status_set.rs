//! Sets of HTTP statuses.

/// A small set of HTTP statuses from 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSet([u64; 8]);

impl StatusSet {
    /// No status.
    pub const EMPTY: StatusSet = StatusSet([0; 8]);

    /// The set of the given statuses; those outside 100 to 599 are left out.
    pub fn of(statuses: &[u16]) -> Self {
        let mut set = Self::EMPTY;
        for &status in statuses {
            set.insert(status);
        }
        set
    }

    /// Adds a status; one outside 100 to 599 changes nothing.
    pub fn insert(&mut self, status: u16) {
        if let Some((word, bit)) = Self::place(status)
            && let Some(word) = self.0.get_mut(word)
        {
            *word |= bit;
        }
    }

    /// Whether the status is in the set.
    pub fn contains(&self, status: u16) -> bool {
        Self::place(status).is_some_and(|(word, bit)| self.0.get(word).is_some_and(|word| word & bit != 0))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 8]
    }

    fn place(status: u16) -> Option<(usize, u64)> {
        (100..600).contains(&status).then(|| {
            let index = usize::from(status) - 100;
            (index / 64, 1 << (index % 64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_set_holds_exactly_its_statuses() {
        let set = StatusSet::of(&[100, 404, 599, 600, 99]);
        for status in 0..1000 {
            assert_eq!(set.contains(status), [100, 404, 599].contains(&status), "{status}");
        }
    }
}
