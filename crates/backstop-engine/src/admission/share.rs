//! How many of a limit's places each class may use.

/// The class of what is done, by how much is lost if it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClassShare {
    /// A part that may be left out: less than 60 %.
    Optional,
    /// A read: one that anybody may do, or that a cache answers, or any other safe call: less than 85 %.
    Read,
    /// A protected operation: less than 95 %.
    Guarded,
    /// Something that changes the world: up to the last place.
    Effect,
}

impl ClassShare {
    /// Every class, in declaration order.
    pub const ALL: [ClassShare; 4] =
        [ClassShare::Optional, ClassShare::Read, ClassShare::Guarded, ClassShare::Effect];

    /// The most places that may be taken, with the one that this class takes: the largest number that is less than the
    /// class's percentage of `limit` (for effects, `limit` itself), but at least 1, and never more than there are.
    ///
    /// So of two or more places the last is always kept for effects, and of three or more the last two or more from
    /// optional parts. A single place is everybody's.
    pub const fn places(self, limit: u32) -> u32 {
        let Some(percent) = self.percent() else { return limit };
        // The largest n with 100 n < percent * limit.
        let below = (percent * limit as u64).saturating_sub(1) / 100;
        let places = if below == 0 { 1 } else { below };
        if places < limit as u64 { places as u32 } else { limit }
    }

    /// The smallest limit of which this class may use so many places: what keeps a limit that one class has for itself
    /// from being less than was said. At most 2^32 - 1.
    pub const fn limit_for(self, places: u32) -> u32 {
        let Some(percent) = self.percent() else { return places };
        if places <= 1 {
            return places;
        }
        // The smallest L with 100 places < percent * L.
        let limit = places as u64 * 100 / percent + 1;
        if limit < u32::MAX as u64 { limit as u32 } else { u32::MAX }
    }

    const fn percent(self) -> Option<u64> {
        match self {
            ClassShare::Optional => Some(60),
            ClassShare::Read => Some(85),
            ClassShare::Guarded => Some(95),
            ClassShare::Effect => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ClassShare::{Effect, Guarded, Optional, Read};
    use super::*;

    /// By hand, for each limit: optional, read, guarded. 10 places: 60 % are 6, less than that is 5; 85 % are 8.5, less
    /// is 8; 95 % are 9.5, less is 9.
    const BY_HAND: [(u32, [u32; 3]); 22] = [
        (0, [0, 0, 0]),
        (1, [1, 1, 1]),
        (2, [1, 1, 1]),
        (3, [1, 2, 2]),
        (4, [2, 3, 3]),
        (5, [2, 4, 4]),
        (6, [3, 5, 5]),
        (7, [4, 5, 6]),
        (8, [4, 6, 7]),
        (9, [5, 7, 8]),
        (10, [5, 8, 9]),
        (11, [6, 9, 10]),
        (12, [7, 10, 11]),
        (13, [7, 11, 12]),
        (14, [8, 11, 13]),
        (15, [8, 12, 14]),
        (16, [9, 13, 15]),
        (17, [10, 14, 16]),
        (18, [10, 15, 17]),
        (19, [11, 16, 18]),
        (20, [11, 16, 18]),
        (40, [23, 33, 37]),
    ];

    #[test]
    fn each_class_has_its_places() {
        for (limit, places) in BY_HAND {
            assert_eq!([Optional, Read, Guarded].map(|class| class.places(limit)), places, "{limit}");
            assert_eq!(Effect.places(limit), limit);
        }
    }

    #[test]
    fn a_class_never_has_more_places_than_the_next_or_none_at_all() {
        for limit in (1..=2_000).chain([u32::MAX - 1, u32::MAX]) {
            let places = ClassShare::ALL.map(|class| class.places(limit));
            assert!(places.is_sorted() && places[0] >= 1, "{limit}: {places:?}");
            assert!(limit == 1 || places[2] < limit, "{limit}: one is kept for effects");
            let percent = |places: u32| f64::from(places) * 100.0 / f64::from(limit);
            if limit >= 2 {
                assert!(percent(places[0]) < 60.0 && percent(places[1]) < 85.0, "{limit}: {places:?}");
                assert!(percent(places[2]) < 95.0, "{limit}: {places:?}");
            }
        }
    }

    /// By hand: of 2 places reads may use 1, of 3 they may use 2; 200 of 236 are 84.7 %, of 235 they would be 85.1 %.
    #[test]
    fn the_limit_for_so_many_places_is_the_smallest_that_has_them() {
        assert_eq!([0, 1, 2, 200].map(|places| Read.limit_for(places)), [0, 1, 3, 236]);
        assert_eq!(Read.limit_for(u32::MAX), u32::MAX);
        for class in ClassShare::ALL {
            for places in 1..=2_000 {
                let limit = class.limit_for(places);
                assert_eq!(class.places(limit), places, "{class:?} {places}");
                assert!(class.places(limit - 1) < places, "{class:?} {places}");
            }
        }
    }
}
