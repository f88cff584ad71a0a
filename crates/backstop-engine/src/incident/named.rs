//! Bounded lists by name: what does not fit is counted under [`OTHER`].

use super::sample::{Counts, OTHER};

/// Something under its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named<T> {
    /// The name.
    pub name: Box<str>,
    /// What is known under it.
    pub value: T,
}

/// What can be added up.
pub(super) trait Merge: Default {
    fn merge(&mut self, other: &Self);
}

impl Merge for u64 {
    fn merge(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }
}

impl Merge for Counts {
    fn merge(&mut self, other: &Counts) {
        Counts::merge(self, other);
    }
}

/// Adds under a name. At most `max` names are kept, and [`OTHER`] beyond them.
pub(super) fn add<T: Merge>(list: &mut Vec<Named<T>>, name: &str, max: usize, value: &T) {
    if let Some(slot) = slot(list, name, max) {
        slot.merge(value);
    }
}

/// The place of a name, or that of [`OTHER`].
pub(super) fn slot<'a, T: Default>(list: &'a mut Vec<Named<T>>, name: &str, max: usize) -> Option<&'a mut T> {
    let find = |list: &[Named<T>], name: &str| list.iter().position(|named| *named.name == *name);
    let place = match find(list, name) {
        Some(place) => place,
        None if list.len() < max => append(list, name),
        None => match find(list, OTHER) {
            Some(place) => place,
            None => append(list, OTHER),
        },
    };
    list.get_mut(place).map(|named| &mut named.value)
}

fn append<T: Default>(list: &mut Vec<Named<T>>, name: &str) -> usize {
    list.push(Named { name: name.into(), value: T::default() });
    list.len() - 1
}

/// The same within its bound: it comes from a file.
pub(super) fn bounded<T: Merge>(list: &[Named<T>], max: usize) -> Vec<Named<T>> {
    let mut bounded = Vec::new();
    for named in list {
        add(&mut bounded, &named.name, max, &named.value);
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: u64) -> Named<u64> {
        Named { name: name.into(), value }
    }

    #[test]
    fn what_does_not_fit_is_counted_as_other() {
        let mut list = Vec::new();
        for (name, count) in [("a", 1), ("b", 2), ("c", 4), ("a", 8), ("d", 16)] {
            add(&mut list, name, 2, &count);
        }
        assert_eq!(list, [named("a", 9), named("b", 2), named(OTHER, 20)]);
        assert_eq!(bounded(&list, 1), [named("a", 9), named(OTHER, 22)]);
    }
}
