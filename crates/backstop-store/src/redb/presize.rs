//! Giving a new file the length from which doubling comes close to its limit.
//!
//! redb doubles a full file, so the length at which a file stops is decided when it is small: from 17 pages it would
//! stop at 53 % of a limit that is a power of two. But one large value grows the file by twice its own size, and that
//! is how a new file is brought to a better length: by at most five values, which stay as ballast (below 2 MiB in all,
//! and below 1/16 of the limit) because an empty end would be cut off again. That gets within a tenth of most limits.

use redb::{Database, Error, TableDefinition};

use super::room::{PAGE, reachable};

const BALLAST: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("ballast");
/// Ballast is of 2^4 to 2^8 pages.
const ORDERS: std::ops::RangeInclusive<u32> = 4..=8;
/// Below, one value would be a large part of the file.
const MIN_LIMIT: u64 = 4 << 20;

/// Brings a new file of `length` bytes to a length from which it can double close to `limit`. `length_now` tells how
/// long it is.
pub(super) fn presize(database: &Database, limit: u64, length_now: impl Fn() -> u64) -> Result<(), Error> {
    if limit < MIN_LIMIT {
        return Ok(());
    }
    while let Some(order) = plan(length_now(), limit) {
        let before = length_now();
        let mut transaction = database.begin_write()?;
        // A little less than its pages, because a value shares them with its key.
        let ballast = vec![0; (usize::pow(2, order) - 1) * PAGE as usize];
        transaction.open_table(BALLAST)?.insert(u64::from(order), &*ballast)?;
        transaction.set_quick_repair(true);
        transaction.commit()?;
        if length_now() <= before {
            break;
        }
    }
    Ok(())
}

/// The ballast to add next; `None` once nothing better can be reached.
fn plan(length: u64, limit: u64) -> Option<u32> {
    let now = reachable(length, limit);
    let (best, order) = best(length / PAGE, *ORDERS.start(), limit);
    order.filter(|_| best > now)
}

/// The greatest length that can be reached from `pages` with ballast of `order` or more, and the first to add.
fn best(pages: u64, order: u32, limit: u64) -> (u64, Option<u32>) {
    let without = (reachable(pages * PAGE, limit), None);
    (order..=*ORDERS.end())
        .filter(|order| 2 << order > pages && (2 << order) * PAGE <= limit / 16)
        .map(|order| (best(pages + (2 << order), order + 1, limit).0, Some(order)))
        .fold(without, |best, other| if other.0 > best.0 { other } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_a_limit_can_be_reached() {
        for limit in [16 << 20, 64 << 20, 100_000_000, 1 << 30, 3 << 30, 4 << 30] {
            let mut pages = 18;
            while let Some(order) = plan(pages * PAGE, limit) {
                pages += 2 << order;
            }
            let reached = reachable(pages * PAGE, limit);
            assert!(reached > limit / 100 * 85, "{limit}: {reached} from {pages} pages");
        }
    }
}
