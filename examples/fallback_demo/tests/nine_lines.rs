//! The program prints its nine lines, byte for byte.

use std::process::Command;

const NINE_LINES: &str = "\
Reply[value=live-description, source=primary, ageSeconds=0]
Reply[value=saved-description, source=snapshot, ageSeconds=30]
Reply[value=boundary, source=snapshot, ageSeconds=60]
rejected=age
rejected=age
rejected=missing
propagated=schema
rejected=capacity
Reply[value=recovered, source=primary, ageSeconds=0]
";

#[test]
fn the_nine_lines_are_printed_and_nothing_else() {
    let ran = Command::new(env!("CARGO_BIN_EXE_fallback_demo")).output().unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), NINE_LINES);
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "");
    assert!(ran.status.success());
}
