//! Whether the credentials of status queries are known to be good.
//!
//! An upstream that does not know a caller may say of everything that it is not there. So an absence counts only if lately,
//! asked with the same credentials, it told of *another* operation.

use std::time::Duration;

use backstop_engine::time::Mono;

/// For so long one answer vouches for the credentials.
const GOOD_FOR: Duration = Duration::from_secs(60 * 60);

/// The last two different operations that the upstream told of.
#[derive(Debug, Default)]
pub(super) struct GoodCredentials([Option<(Box<[u8]>, Mono)>; 2]);

impl GoodCredentials {
    /// It told of this one, by the upstream's id.
    pub(super) fn told_of(&mut self, upstream_id: &[u8], now: Mono) {
        let [last, before] = &mut self.0;
        if last.as_ref().is_some_and(|(id, _)| **id != *upstream_id) {
            *before = last.take();
        }
        *last = Some((upstream_id.into(), now));
    }

    /// It does not take the credentials any more.
    pub(super) fn refused(&mut self) {
        self.0 = [None, None];
    }

    /// Whether it told of another operation than this one, lately.
    pub(super) fn vouches_for(&self, upstream_id: &[u8], now: Mono) -> bool {
        let is_recent = |at: Mono| now.since(at).is_none_or(|age| age < GOOD_FOR);
        self.0.iter().flatten().any(|(id, at)| **id != *upstream_id && is_recent(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_ns(seconds * 1_000_000_000)
    }

    #[test]
    fn another_operation_vouches_for_an_hour() {
        let mut good = GoodCredentials::default();
        assert!(!good.vouches_for(b"a", at(0)));
        good.told_of(b"b", at(10));
        assert!(good.vouches_for(b"a", at(3609)));
        assert!(!good.vouches_for(b"a", at(3610)));
    }

    /// That it was there once says nothing about whether it is gone.
    #[test]
    fn an_operation_does_not_vouch_for_itself() {
        let mut good = GoodCredentials::default();
        good.told_of(b"a", at(10));
        assert!(!good.vouches_for(b"a", at(11)));
        good.told_of(b"b", at(12));
        good.told_of(b"b", at(13));
        assert!(good.vouches_for(b"a", at(14)) && good.vouches_for(b"b", at(14)));
        good.told_of(b"a", at(15));
        assert!(good.vouches_for(b"a", at(16)), "by what was told before it");
    }

    #[test]
    fn credentials_that_are_refused_are_not_good_any_more() {
        let mut good = GoodCredentials::default();
        good.told_of(b"b", at(10));
        good.refused();
        assert!(!good.vouches_for(b"a", at(11)));
    }
}
