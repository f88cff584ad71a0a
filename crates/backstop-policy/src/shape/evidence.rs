//! The evidence file that `verified` names.

use crate::read::Need::{Default, Required};
use crate::read::table;
use crate::value::{Count, Date, Name, PositiveTime, Rate, Text};

table! {
    /// What a dependency was measured to bear as an alternative, in a TOML file of its own that `verified` names. Without
    /// it, before `measured`, after `valid_until`, while the date cannot be believed, or if it is about another dependency,
    /// none of the alternative is used.
    struct EvidenceTable {
        /// The dependency that was measured.
        "dependency" dependency: Name = Required;
        /// Calls per second or minute that it bore beside the load that was present.
        "rate" rate: Rate = Required;
        /// Calls at once that it bore beside the load that was present.
        "concurrency" concurrency: Count = Required;
        /// The 95th percentile of the latency meanwhile. Nothing is decided by it: it is for whoever reads it next.
        "p95" p95: PositiveTime = Required;
        /// When it was measured; it counts from then on.
        "measured" measured: Date = Required;
        /// Until when that counts; a day counts to its end, in UTC.
        "valid_until" valid_until: Date = Required;
        /// What load was present. Nothing is decided by it either.
        "load" load: Text = Required;
        /// What `backstop drill capacity` writes of the policy: a digest of what it says of the dependency and of the resources
        /// that it uses. Where it is there, it must be that of the policy in force.
        "policy" policy: Text = Default("the evidence counts whatever the policy says of it");
    }
}
