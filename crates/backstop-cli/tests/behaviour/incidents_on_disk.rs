//! A bad disk costs records, never a request; a damaged file costs itself; without a disk there is memory.

use std::path::Path;

use serde_json::Value;

use crate::disk::{SmallDisk, is_logged, warnings};
use crate::support::gateway::folder;
use crate::support::shop::HOST;
use crate::support::state::{current, file_of, file_until, page, policy, second};
use crate::support::{Gateway, Hand, Policy, expect, product, products, run};
use backstop_lab::origin::{Behaviour, Matcher, Origin};

async fn start(folder: &Path, policy: &Policy) -> (Gateway, Hand) {
    let mut gateway = Gateway::start_with_clock(folder, policy, "freeze");
    HOST.clone_into(&mut gateway.host);
    let hand = gateway.hand();
    (gateway, hand)
}

async fn read(gateway: &Gateway) -> backstop_lab::client::Response {
    gateway.get("/p/1", &crate::support::shop::SPANISH).await
}

/// A good read, then an outage of one second in which every read is answered with the copy. The incident's identity.
async fn outage(origin: &Origin, gateway: &Gateway, hand: &mut Hand) -> String {
    origin.reset();
    origin.default(products("first"));
    expect::live(&read(gateway).await, 200, &product("1", "first", "es"));
    origin.on(Matcher::any(), Behaviour::status(503));
    for _ in 0..10 {
        assert_eq!(read(gateway).await.text(), product("1", "first", "es"));
    }
    second(gateway, hand).await;
    current(gateway).await.expect("an incident")
}

async fn failures(gateway: &Gateway) -> f64 {
    gateway.metrics().await.sum("backstop_state_writes_failed_total", &[])
}

/// The store's folder would be below a regular file, where nobody can write, not even root.
#[test]
fn an_unwritable_folder_costs_records_and_no_request() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let policy = policy(origin.addr()).store("path = \"policy.toml/data\"");
        let (gateway, mut hand) = start(&folder(), &policy).await;
        is_logged(&gateway, "incidents and the states of breakers are kept in memory only").await;
        let id = outage(&origin, &gateway, &mut hand).await;
        gateway.metrics_until(|metrics| metrics.sum("backstop_state_writes_failed_total", &[]) > 0.0).await;
        assert!(
            warnings(&gateway).await.contains("incidents and the states of breakers are kept in memory only")
        );
        assert_eq!(page(&gateway, &format!("/incidents/{id}")).await["phase"], "degraded");
        gateway.stop();
    });
}

/// No room at all, and then there is some: what could not be written is written then.
#[test]
fn a_full_disk_costs_records_until_there_is_room() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let folder = folder();
        let _disk = SmallDisk::mount(folder.join("backstop-data"), "8m");
        let filler = folder.join("backstop-data/filler");
        let full = std::fs::write(&filler, vec![0; 9 << 20]);
        assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        // Copies leave the rest of the disk alone.
        let policy = policy(origin.addr()).store("snapshots = { memory = \"16 MiB\", disk = \"2 MiB\" }");
        let (gateway, mut hand) = start(&folder, &policy).await;
        let id = outage(&origin, &gateway, &mut hand).await;
        gateway.metrics_until(|metrics| metrics.sum("backstop_state_writes_failed_total", &[]) > 0.0).await;
        is_logged(&gateway, "cannot be written: incidents and the states of breakers").await;
        for _ in 0..10 {
            assert_eq!(read(&gateway).await.text(), product("1", "first", "es"));
        }
        std::fs::remove_file(&filler).unwrap();
        let file = file_until(&file_of(&gateway, &id), |file| file["phase"] == "degraded").await;
        assert_eq!(file["id"], *id);
        is_logged(&gateway, "the folder is written again").await;
        let names = std::fs::read_dir(folder.join("backstop-data/incidents")).unwrap();
        let names: Vec<_> = names.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names, [format!("{id}.json").as_str()], "nothing half written is left");
    });
}

/// Named in the log, moved away, and never a crash; the next incident has another number.
#[test]
fn a_damaged_record_is_set_aside_and_named() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let policy = policy(origin.addr());
        let (gateway, mut hand) = start(&folder(), &policy).await;
        let id = outage(&origin, &gateway, &mut hand).await;
        let file = file_of(&gateway, &id);
        let folder = gateway.stop();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, &text[..text.len() / 2]).unwrap();
        let (gateway, mut hand) = start(&folder, &policy).await;
        let aside = format!("{}.damaged", file.file_name().unwrap().to_str().unwrap());
        is_logged(&gateway, "a file is not what was written").await;
        is_logged(&gateway, &aside).await;
        assert!(file.with_file_name(&aside).exists() && !file.exists());
        assert_eq!(page(&gateway, "/incidents").await["current"], Value::Null);
        // The breaker is still open: that is an incident again, with the next number.
        second(&gateway, &mut hand).await;
        assert!(current(&gateway).await.is_some_and(|next| next.ends_with("-2")));
        assert_eq!(failures(&gateway).await, 0.0);
    });
}

/// Killed while it writes, again and again: the record is whole each time, and it is the same incident.
#[test]
fn kill_9_never_leaves_half_a_record() {
    run(async {
        let kills: u64 =
            std::env::var("BACKSTOP_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3);
        let origin = Origin::start().await.unwrap();
        let policy = policy(origin.addr());
        let (mut gateway, mut hand) = start(&folder(), &policy).await;
        let id = outage(&origin, &gateway, &mut hand).await;
        file_until(&file_of(&gateway, &id), |file| file["phase"] == "degraded").await;
        for kill in 1..=kills {
            // Each five seconds the record is written. The writer is a little further each time.
            for _ in 0..20 * kill {
                hand.pass(std::time::Duration::from_secs(5));
                page(&gateway, "/incidents").await;
            }
            let folder = gateway.kill();
            (gateway, hand) = start(&folder, &policy).await;
            assert_eq!(page(&gateway, &format!("/incidents/{id}")).await["restarts"], kill);
            let names = std::fs::read_dir(folder.join("backstop-data/incidents")).unwrap();
            let names: Vec<_> = names.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            assert!(names.iter().all(|name| !name.contains("damaged")), "{names:?}");
            // The number of restarts is on disk before the next one.
            second(&gateway, &mut hand).await;
            file_until(&file_of(&gateway, &id), |file| file["restarts"] == kill).await;
        }
    });
}

#[test]
fn without_a_disk_incidents_are_kept_in_memory() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let policy = policy(origin.addr()).store("snapshots = { memory = \"16 MiB\", disk = \"0 B\" }");
        let (gateway, mut hand) = start(&folder(), &policy).await;
        outage(&origin, &gateway, &mut hand).await;
        assert_eq!(page(&gateway, "/incidents").await["on_disk"], false);
        assert_eq!(failures(&gateway).await, 0.0);
        let folder = gateway.stop();
        assert!(!folder.join("backstop-data").exists());
        let (gateway, _) = start(&folder, &policy).await;
        assert_eq!(current(&gateway).await, None);
    });
}
