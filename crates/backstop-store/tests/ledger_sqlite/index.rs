//! Indexes that a file lacks are made when it is opened.

use backstop_store::ledger::Ledger;
use backstop_store::ledger::sqlite::FILE_NAME;

use super::support::{close, open};

fn indexes(folder: &std::path::Path) -> Vec<String> {
    let shell = rusqlite::Connection::open(folder.join(FILE_NAME)).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name";
    let mut statement = shell.prepare(names).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// As in a file that was made before anybody needed them.
#[test]
fn an_older_file_gets_the_indexes_that_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    close(&open(folder.path()));
    let all = indexes(folder.path());
    assert!(all.len() > 5 && all.contains(&"operations_absent".to_owned()), "{all:?}");
    let shell = rusqlite::Connection::open(folder.path().join(FILE_NAME)).unwrap();
    shell.execute_batch("DROP INDEX operations_absent; DROP INDEX operations_created").unwrap();
    drop(shell);
    assert_eq!(indexes(folder.path()).len(), all.len() - 2);
    let again = open(folder.path());
    assert_eq!(indexes(folder.path()), all);
    assert_eq!(again.epoch().number(), 2);
    close(&again);
}
