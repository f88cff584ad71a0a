//! The variants of one key. Most keys have one, which lies in the entry itself.

use super::variant::Variant;

/// The variants of one key, in no order.
#[derive(Debug, Default)]
pub(super) struct Variants {
    first: Option<Variant>,
    more: Vec<Variant>,
}

impl Variants {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Variant> {
        self.first.iter().chain(&self.more)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Variant> {
        self.first.iter_mut().chain(&mut self.more).find(|variant| variant.id == id)
    }

    pub(super) fn push(&mut self, variant: Variant) {
        match self.first {
            None => self.first = Some(variant),
            Some(_) => self.more.push(variant),
        }
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Variant> {
        if let Some(first) = self.first.take_if(|variant| variant.id == id) {
            self.first = self.more.pop();
            return Some(first);
        }
        let position = self.more.iter().position(|variant| variant.id == id)?;
        Some(self.more.swap_remove(position))
    }

    /// The one whose read began first.
    pub(super) fn oldest(&self) -> Option<&Variant> {
        self.iter().reduce(|a, b| if a.began_after(b) { b } else { a })
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Variant> {
        self.first.into_iter().chain(self.more)
    }
}
