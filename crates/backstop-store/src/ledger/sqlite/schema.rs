//! The tables, and how the file says what it is.

/// `BSLG`, in the header of the file (<https://www.sqlite.org/fileformat2.html#application_id>).
pub(super) const APPLICATION_ID: i64 = 0x4253_4c47;
/// The format that is written here.
pub(super) const FORMAT: i64 = 1;

/// An operation is open exactly while it is due, and under way exactly while it is leased and not due; the indexes rest on that.
/// Moments on the clock since boot and dates are whole nanoseconds.
pub(super) const TABLES: &str = "
CREATE TABLE lives (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL) STRICT;
INSERT INTO lives VALUES (1, 0);
CREATE TABLE operations (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    scope BLOB NOT NULL,
    key BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    route TEXT NOT NULL,
    upstream_id BLOB,
    captured BLOB NOT NULL,
    created INTEGER NOT NULL,
    state TEXT NOT NULL,
    why TEXT NOT NULL,
    fence INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    lease_until INTEGER,
    due INTEGER,
    verify_until INTEGER NOT NULL,
    born INTEGER NOT NULL,
    settle_from INTEGER NOT NULL,
    asked INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    absences INTEGER NOT NULL,
    absent_at INTEGER NOT NULL,
    was_absent INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    answer_status INTEGER,
    answer_fields BLOB,
    answer_body BLOB,
    UNIQUE (key, scope)
) STRICT;
CREATE TABLE history (
    operation BLOB NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    was TEXT NOT NULL,
    was_why TEXT NOT NULL,
    became TEXT NOT NULL,
    became_why TEXT NOT NULL,
    person TEXT,
    reason TEXT
) STRICT;
";

/// What makes the reads of [`statements`](super::statements) fast. Each is made where it is not there yet, whenever a file is opened:
/// a file of this format may be older than one of them.
pub(super) const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS operations_due ON operations (route, due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS operations_under_way ON operations (lease_until) WHERE state = 'dispatching';
CREATE INDEX IF NOT EXISTS operations_decided ON operations (route, changed) WHERE due IS NULL AND lease_until IS NULL;
CREATE INDEX IF NOT EXISTS operations_with_content ON operations (route, changed) WHERE answer_fields IS NOT NULL;
CREATE INDEX IF NOT EXISTS history_of ON history (operation);
CREATE INDEX IF NOT EXISTS operations_absent ON operations (route, id, created)
    WHERE state = 'not_executed' AND why = 'absent';
CREATE INDEX IF NOT EXISTS operations_created ON operations (created, id);
";

/// With which secret the digests of this ledger were made, as a digest itself.
pub(super) const OWNER: &str = "
CREATE TABLE IF NOT EXISTS owner (one INTEGER PRIMARY KEY CHECK (one = 1), digest BLOB NOT NULL) STRICT;
";
