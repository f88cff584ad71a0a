//! Arrows go down only, for normal, build and test dependencies alike.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use crate::repository::{root, text};

/// The floors, from the bottom.
const FLOORS: [&[&str]; 6] = [
    &["backstop-engine"],
    &["backstop-chart", "backstop-policy", "backstop-store"],
    &["backstop"],
    &["backstop-gateway", "backstop-lab"],
    &["backstop-cli"],
    // Examples stand outside and may use everything.
    &["axum_service", "fallback_demo"],
];

fn packages() -> Vec<Package> {
    let manifest = root().join("Cargo.toml");
    let metadata = MetadataCommand::new().cargo_path(env!("CARGO")).manifest_path(manifest).no_deps().exec();
    metadata.expect("cargo metadata").packages
}

fn floors() -> BTreeMap<&'static str, usize> {
    let floors = FLOORS.iter().enumerate();
    floors.flat_map(|(floor, crates)| crates.iter().map(move |name| (*name, floor))).collect()
}

#[test]
fn arrows_go_down_only() {
    let floors = floors();
    let packages = packages();
    assert_eq!(packages.len(), floors.len(), "every crate of the workspace has its floor, and no other");
    for package in &packages {
        let own =
            floors.get(package.name.as_str()).unwrap_or_else(|| panic!("{} has no floor", package.name));
        // A crate's tests may use the crate itself, with a feature for tests.
        for dependency in package.dependencies.iter().filter(|dependency| dependency.name != *package.name) {
            if let Some(floor) = floors.get(dependency.name.as_str()) {
                assert!(
                    floor < own,
                    "{} (floor {own}) uses {} (floor {floor})",
                    package.name,
                    dependency.name
                );
            }
        }
    }
}

#[test]
fn the_engine_uses_nothing() {
    let engine =
        packages().into_iter().find(|package| package.name == "backstop-engine").expect("the engine");
    let mut used =
        engine.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
    let loom = used.next().expect("loom, while interleavings are explored");
    assert_eq!(loom.name, "loom");
    assert_eq!(loom.target.as_ref().map(ToString::to_string).as_deref(), Some("cfg(loom)"));
    assert_eq!(used.next().map(|dependency| &dependency.name), None);
}

#[test]
fn the_engine_is_banned_from_clocks_io_and_async() {
    let bans = text("crates/backstop-engine/clippy.toml");
    for banned in [
        "std::time::Instant",
        "std::time::SystemTime",
        "std::hash::RandomState",
        "std::fs::File",
        "std::fs::read",
        "std::fs::write",
        "std::net::TcpStream",
        "std::net::TcpListener",
        "std::net::UdpSocket",
        "std::sync::Mutex",
        "std::sync::RwLock",
        "std::sync::Condvar",
        "std::task::Context",
        "std::thread::spawn",
        "std::thread::sleep",
        "std::env::var",
        "std::println",
    ] {
        let ban = format!("{{ path = \"{banned}\", reason = \"");
        assert!(bans.contains(&ban), "the engine's clippy.toml does not ban {banned}");
    }
}
