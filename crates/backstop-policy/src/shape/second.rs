//! `retry` and `alternative` of a route: what may be asked after the first call.

use crate::read::Need::{Default, Required};
use crate::read::table;
use crate::value::{Attempts, Name, RetryOwnerChoice, Text};

table! {
    /// Who repeats a call that failed for the moment. Backstop repeats reads only, never after a timeout, and only while
    /// enough calls succeed.
    struct RetryTable {
        /// How often a call is sent at most, the first time included.
        "attempts" attempts: Attempts = Default("`2`, or `1` where another layer owns retries");
        /// The one layer that repeats: `backstop`, the `client` (then Backstop does not), or the dependency itself
        /// towards what lies behind it (`upstream`, then neither).
        "owner" owner: RetryOwnerChoice = Default("`\"backstop\"`");
    }
}

table! {
    /// Another dependency that is asked when the first fails, within the same deadline. Only if it shares no resource with
    /// what is the cause, and only within what `verified` says.
    struct AlternativeTable {
        /// The dependency that is asked instead.
        "dependency" dependency: Name = Required;
        /// The evidence file, relative to the policy file: what this dependency was measured to bear, and until when
        /// that counts. Another route's evidence does not count for this one; where several routes have some about one
        /// dependency, the lowest figures and the shortest time hold for all of them.
        "verified" verified: Text = Default("none: then it is never asked");
    }
}
