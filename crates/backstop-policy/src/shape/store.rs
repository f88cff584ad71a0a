//! `[store]`.

use crate::read::Need::Default;
use crate::read::table;
use crate::value::{DiskSize, LedgerChoice, Size, Text};

table! {
    /// Where copies and operations are kept. Nothing needs to be installed.
    struct StoreTable {
        /// Folder of everything that survives a restart; relative to where the process is started.
        "path" path: Text = Default("`\"backstop-data\"`");
        /// How much of memory and disk copies may take. The oldest unused ones give way.
        "snapshots" snapshots: SnapshotsTable = Default("as its keys say");
        /// Where operations of routes of the class `effect` are written: `sqlite` is a file of its own in `path`.
        "ledger" ledger: LedgerChoice = Default("`\"sqlite\"` where a route has operations, else none");
    }
}

table! {
    /// How much of memory and disk copies may take.
    struct SnapshotsTable {
        /// Memory for copies.
        "memory" memory: Size = Default("`\"64 MiB\"`");
        /// Disk for copies; `"0"` keeps them in memory only, and a restart loses them. Then nothing is written to disk:
        /// incidents and the states of breakers are lost with a restart too. Operations are written all the same.
        "disk" disk: DiskSize = Default("`\"1 GiB\"`");
    }
}
