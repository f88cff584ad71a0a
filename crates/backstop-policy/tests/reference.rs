//! The generated reference is what the code says. `UPDATE_REFERENCE=1` writes it anew.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

use std::fs;
use std::path::Path;

use backstop_policy::{drill_page, json_schema, reference_page};

fn hold(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is not what the code says: run with UPDATE_REFERENCE=1",
        path.display()
    );
}

#[test]
fn the_schema_is_current() {
    hold("policy.schema.json", &format!("{:#}\n", json_schema()));
}

#[test]
fn the_reference_page_is_current() {
    hold("policy.md", &reference_page());
}

#[test]
fn the_page_of_drill_files_is_current() {
    hold("drill-file.md", &drill_page());
}
