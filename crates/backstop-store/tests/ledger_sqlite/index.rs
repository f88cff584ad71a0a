//! Reads that come once a second touch only what they are about.

use backstop_store::ledger::Ledger;
use backstop_store::ledger::sqlite::FILE_NAME;

use super::support::{close, open};

/// As its documentation has it, the planner's word for a search that needs no row of the table beside those it gives.
const PLAN: &str = "EXPLAIN QUERY PLAN SELECT * FROM operations WHERE route = 'pay' AND id > x'' AND id <= x'ff' AND \
    created > 0 AND state = 'not_executed' AND why = 'absent' ORDER BY id LIMIT 9";

fn plan(folder: &std::path::Path) -> Vec<String> {
    let shell = rusqlite::Connection::open(folder.join(FILE_NAME)).unwrap();
    let mut statement = shell.prepare(PLAN).unwrap();
    statement.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect()
}

/// Also in a file that was made before there was the index.
#[test]
fn what_was_decided_by_absence_is_found_by_its_own_index() {
    const SEARCH: &str = "SEARCH operations USING INDEX operations_absent (route=? AND id>? AND id<?)";
    let folder = tempfile::tempdir().unwrap();
    close(&open(folder.path()));
    assert_eq!(plan(folder.path()), [SEARCH]);
    let shell = rusqlite::Connection::open(folder.path().join(FILE_NAME)).unwrap();
    shell.execute_batch("DROP INDEX operations_absent").unwrap();
    drop(shell);
    assert_ne!(plan(folder.path()), [SEARCH]);
    let again = open(folder.path());
    assert_eq!(plan(folder.path()), [SEARCH]);
    assert_eq!(again.epoch().number(), 2);
    close(&again);
}
