//! The moment at which a test build ends itself.

use crate::support::gateway::folder;
use crate::support::{Gateway, Policy};

#[test]
fn a_moment_that_nobody_knows_is_refused_at_the_start() {
    let folder = folder();
    let policy = Policy::shop("127.0.0.1:9".parse().unwrap());
    let refused = Gateway::start_to_be_killed(&folder, &policy, "at_lunch:1").unwrap_err();
    let expected = "error: BACKSTOP_KILL_AT: not a moment and a number, as `answer_read:3`: at_lunch:1";
    assert_eq!(refused.log.first().map(String::as_str), Some(expected), "{refused:#?}");
    assert_eq!(refused.status.and_then(|status| status.code()), Some(2));
    std::fs::remove_dir_all(&folder).unwrap();
}
