//! `[check]`: warnings that someone has accepted, with the reason.

use crate::read::Need::{Default, Required};
use crate::read::{List, table};
use crate::value::Text;

table! {
    /// How warnings are treated.
    struct CheckTable {
        /// Warnings and notes that are accepted.
        "allow" allow: List<WaiverTable> = Default("none");
    }
}

table! {
    /// One accepted warning.
    struct WaiverTable {
        /// Its code, such as `BS0501`.
        "code" code: Text = Required;
        /// Why it is accepted, for whoever reads the file next.
        "reason" reason: Text = Required;
    }
}
