//! `[resource.NAME]`.

use crate::read::Need::Default;
use crate::read::table;
use crate::value::{Count, Rate};

table! {
    /// Something that several dependencies share and that bears only so much, such as a database. At least one of its
    /// keys must be given.
    struct ResourceTable {
        /// Calls under way at once over all dependencies that use it, alternatives included. The excess is refused at
        /// once (`resource_full`), and by class: calls of `optional` routes take less than 60 % of the places, reads less
        /// than 85 %, writes all (of 40, the 24th optional call and the 34th read are refused). A single place is
        /// everybody's.
        "concurrency" concurrency: Count = Default("not limited");
        /// Calls begun per second or minute, a whole number per second, over all dependencies that use it. The excess is refused at once
        /// (`resource_full`).
        "rate" rate: Rate = Default("not limited");
    }
}
