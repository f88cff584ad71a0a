//! A folder that another process still uses at the start, as when one gateway takes over from another: what lies in it is
//! taken up as soon as it is free, and before anything is written over it.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use backstop_lab::origin::Origin;
use serde_json::Value;

use crate::disk::is_logged;
use crate::support::gateway::folder;
use crate::support::state::{current, file_of, file_until, order, page, policy, saved, second};
use crate::support::{BOUND, Gateway, Policy, run};

const OPEN: &str = r#"{"state":"open","reason":"the catalog is being moved"}"#;
const RELEASE: &str = r#"{"state":"release"}"#;

/// What an earlier gateway left: its folder, its incident, and why the breaker is held open.
async fn left(policy: &Policy) -> (PathBuf, String, Value) {
    let gateway = Gateway::start_with_clock(&folder(), policy, "freeze");
    let mut hand = gateway.hand();
    assert_eq!(order(&gateway, "catalog", OPEN).await.status(), 200);
    second(&gateway, &mut hand).await;
    let incident = current(&gateway).await.expect("a dependency that is cut off is an incident");
    let held = shown(&gateway).await["held"].clone();
    (gateway.stop(), incident, held)
}

async fn shown(gateway: &Gateway) -> Value {
    page(gateway, "/dependencies/catalog/breaker").await
}

/// As another process would, until it is dropped.
fn take(folder: &Path) -> File {
    let lock = OpenOptions::new().write(true).open(folder.join("backstop-data/state.lock")).unwrap();
    lock.try_lock().unwrap();
    lock
}

#[test]
fn an_order_and_an_incident_are_taken_up_from_a_folder_that_was_in_use() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let policy = policy(origin.addr());
        let (folder, incident, held) = left(&policy).await;
        let lock = take(&folder);
        let gateway = Gateway::start_in(&folder, &policy);
        is_logged(&gateway, "another process uses this folder").await;
        assert_eq!(shown(&gateway).await["phase"], "closed", "it cannot be known yet");
        drop(lock);
        is_logged(&gateway, "an operator's order from before the start holds again").await;
        saved(&gateway, "forced_open").await;
        assert_eq!(shown(&gateway).await["phase"], "forced_open");
        assert_eq!(shown(&gateway).await["held"], held, "with its reason and its date");
        file_until(&file_of(&gateway, &incident), |file| file["restarts"] == 1).await;
        assert_eq!(current(&gateway).await, Some(incident));
        let gateway = gateway.restart_after_kill(&policy);
        assert_eq!(shown(&gateway).await["held"], held);
    });
}

#[test]
fn an_order_that_was_given_since_the_start_is_newer_than_what_is_taken_up() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let policy = policy(origin.addr());
        let (folder, _, _) = left(&policy).await;
        let lock = take(&folder);
        let gateway = Gateway::start_in(&folder, &policy);
        is_logged(&gateway, "another process uses this folder").await;
        let released = order(&gateway, "catalog", RELEASE).await.json().unwrap();
        assert_eq!(released["survives_restart"], false);
        drop(lock);
        is_logged(&gateway, "incidents from before the start are taken up").await;
        saved(&gateway, "closed").await;
        assert_eq!(shown(&gateway).await["phase"], "closed");
    });
}

/// A successor can listen only where its predecessor has gone: then that has written everything and left the folder.
#[test]
fn who_can_take_the_address_finds_the_folder_free() {
    run(async {
        let origin = Origin::start().await.unwrap();
        for _ in 0..5 {
            let folder = folder();
            let mut gateway = Gateway::start_in(&folder, &policy(origin.addr()));
            assert_eq!(order(&gateway, "catalog", OPEN).await.status(), 200);
            gateway.signal("TERM");
            let address = gateway.addr;
            let gone = async {
                while tokio::net::TcpListener::bind(address).await.is_err() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(BOUND, gone).await.expect("it stops");
            take(&folder);
            assert!(gateway.wait().success());
        }
    });
}
