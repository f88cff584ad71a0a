//! The reads that come often, each with the index that it rests on.
//!
//! One thread reads and writes, and every intent waits for it: a read that goes through the whole table, which holds the operations
//! of a month, is a pause for all of them. So the planner's choice is tested here, of these very texts. A `+` keeps a column's
//! index out of the choice (<https://www.sqlite.org/optoverview.html#disqualifying_where_clause_terms_using_unary_>).
//!
//! An operation is open exactly while it is due. What is neither due nor leased is decided.

/// `key`, `scope`.
pub(super) const BY_KEY: &str = "WHERE key = ?1 AND scope = ?2";
/// `id`.
pub(super) const BY_ID: &str = "WHERE id = ?1";
/// `route`, the moment, how many.
pub(super) const DUE: &str = "WHERE route = ?1 AND due <= ?2 ORDER BY asked, due, id LIMIT ?3";
/// `route`.
pub(super) const OLDEST_DUE_OF: &str = "SELECT min(due) FROM operations WHERE route = ?1 AND due IS NOT NULL";
/// The moment, how many.
pub(super) const LAPSED: &str =
    "WHERE state = 'dispatching' AND lease_until <= ?1 ORDER BY lease_until LIMIT ?2";
/// The date, how many.
pub(super) const OVERDUE: &str =
    "WHERE due IS NOT NULL AND state = 'unknown' AND verify_until <= ?1 ORDER BY +id LIMIT ?2";
/// `route`, the date, how many.
pub(super) const DECIDED_BEFORE: &str =
    "WHERE route = ?1 AND due IS NULL AND lease_until IS NULL AND changed <= ?2 ORDER BY changed LIMIT ?3";
/// `route`, the date, how many.
pub(super) const WITH_CONTENT_BEFORE: &str = "WHERE route = ?1 AND answer_fields IS NOT NULL AND due IS NULL AND \
    lease_until IS NULL AND changed <= ?2 ORDER BY changed LIMIT ?3";
/// `route`, the name before the first, the last name, the date, how many.
pub(super) const ABSENT: &str = "WHERE route = ?1 AND id > ?2 AND id <= ?3 AND created > ?4 AND state = 'not_executed' \
    AND why = 'absent' ORDER BY id LIMIT ?5";
/// The date, the name before the first of that date, how many.
pub(super) const LIST: &str =
    "WHERE created >= ?1 AND (created > ?1 OR ?2 IS NULL OR id > ?2) ORDER BY created, id LIMIT ?3";
/// As [`LIST`], of one state that is decided or under way.
pub(super) const LIST_STATE: &str = "WHERE created >= ?1 AND (created > ?1 OR ?2 IS NULL OR id > ?2) AND state = ?4 \
    ORDER BY created, id LIMIT ?3";
/// As [`LIST`], of one state that is open.
pub(super) const LIST_OPEN: &str = "WHERE due IS NOT NULL AND state = ?4 AND +created >= ?1 AND (+created > ?1 OR \
    ?2 IS NULL OR id > ?2) ORDER BY +created, +id LIMIT ?3";
/// `state`.
pub(super) const OLDEST: &str = "SELECT min(+created) FROM operations WHERE due IS NOT NULL AND state = ?1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::schema::{INDEXES, TABLES};

    fn plan(connection: &rusqlite::Connection, statement: &str) -> Vec<String> {
        let of_rows = format!("SELECT * FROM operations {statement}");
        let whole = if statement.starts_with("SELECT") { statement } else { &of_rows };
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {whole}")).unwrap();
        let values = vec![rusqlite::types::Null; explained.parameter_count()];
        let steps = explained.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
        steps.map(Result::unwrap).collect()
    }

    /// By hand: which rows each read is about, and the index that holds just those.
    #[test]
    fn every_read_that_comes_often_has_its_index() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(&format!("{TABLES} {INDEXES}")).unwrap();
        for (statement, begins, index) in [
            (BY_KEY, "SEARCH", "sqlite_autoindex_operations_2"),
            (BY_ID, "SEARCH", "sqlite_autoindex_operations_1"),
            (DUE, "SEARCH", "operations_due"),
            (OLDEST_DUE_OF, "SEARCH", "operations_due"),
            (LAPSED, "SEARCH", "operations_under_way"),
            (OVERDUE, "SCAN", "operations_due"),
            (DECIDED_BEFORE, "SEARCH", "operations_decided"),
            (WITH_CONTENT_BEFORE, "SEARCH", "operations_with_content"),
            (ABSENT, "SEARCH", "operations_absent"),
            (LIST, "SEARCH", "operations_created"),
            (LIST_STATE, "SEARCH", "operations_created"),
            (LIST_OPEN, "SCAN", "operations_due"),
            (OLDEST, "SEARCH", "operations_due"),
        ] {
            let plan = plan(&connection, statement);
            let uses =
                |step: &String| step.starts_with(begins) && step.split_whitespace().any(|word| word == index);
            assert!(plan.first().is_some_and(uses), "{statement}: {plan:?}");
        }
    }
}
