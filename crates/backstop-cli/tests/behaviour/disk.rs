//! A full, unwritable or damaged disk costs copies on disk. It costs no request, no copy in memory, and it is said: in the
//! log, in the metrics and on `/readyz`.

use std::path::{Path, PathBuf};
use std::process::Command;

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin, Request};

use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, right_answer, written};
use crate::support::{BOUND, Gateway, Policy, expect, product, products, run};

const COPIES: usize = 40;

fn policy(origin: std::net::SocketAddr) -> Policy {
    Policy::shop(origin).store("snapshots = { memory = \"32 MiB\", disk = \"64 MiB\" }")
}

fn start(folder: &Path, policy: &Policy) -> Gateway {
    let mut gateway = Gateway::start_in(folder, policy);
    HOST.clone_into(&mut gateway.host);
    gateway
}

/// What `/readyz` warns of. The gateway stays ready: taking it out of service would cost every request.
async fn warnings(gateway: &Gateway) -> String {
    let ready = client::get(gateway.admin, "/readyz", &[]).await.unwrap();
    let said = ready.json().unwrap();
    assert_eq!((ready.status(), said["ready"].as_bool()), (200, Some(true)));
    said["warnings"].to_string()
}

async fn is_disk_ok(gateway: &Gateway, expected: f64) {
    gateway.metrics_until(|metrics| metrics.sum("backstop_store_disk_ok", &[]) == expected).await;
}

async fn is_logged(gateway: &Gateway, words: &str) {
    let said = async {
        while !gateway.log().iter().any(|line| line.contains(words)) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let said = tokio::time::timeout(BOUND, said).await;
    assert!(said.is_ok(), "not logged: {words}: {:#?}", gateway.log());
}

/// Reads and an outage while the disk is in trouble: every read is answered live, and then from memory.
async fn serves_from_memory(gateway: &Gateway, origin: &Origin) {
    origin.on(Matcher::any(), products("first"));
    for id in 1..=3 {
        let live = gateway.get(&format!("/p/{id}"), &SPANISH).await;
        expect::live(&live, 200, &product(&id.to_string(), "first", "es"));
    }
    origin.on(Matcher::any(), Behaviour::status(503));
    for id in 1..=3 {
        let saved = gateway.get(&format!("/p/{id}"), &SPANISH).await;
        assert_eq!((saved.status(), saved.text()), (200, product(&id.to_string(), "first", "es")));
        assert_eq!(saved.mark().unwrap().unwrap().source.as_deref(), Some("snapshot"));
    }
}

/// The path lies below a regular file, so that nobody can write there, not even root.
#[test]
fn an_unwritable_path_costs_no_request() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let gateway = start(&folder(), &policy(origin.addr()).store("path = \"policy.toml/copies\""));
        is_disk_ok(&gateway, 0.0).await;
        is_logged(&gateway, "copies are kept in memory only").await;
        assert!(warnings(&gateway).await.contains("memory only"));
        serves_from_memory(&gateway, &origin).await;
        // A withdrawal that the disk cannot confirm is answered all the same.
        origin.on(Matcher::any().method("PUT"), Answer::new(204));
        assert_eq!(gateway.request("PUT", "/p/1", &[], b"{}").await.status(), 204);
        assert_eq!(gateway.get("/p/1", &SPANISH).await.status(), 503);
    });
}

/// A file that is text, and one that is bytes without any meaning: set aside, a new one begun, nothing served from it.
#[test]
fn a_damaged_file_is_set_aside() {
    run(async {
        for damage in [
            (|file: &Path| std::fs::write(file, "this was never a store of copies").unwrap()) as fn(&Path),
            |file| std::fs::write(file, vec![0xff; 100_000]).unwrap(),
        ] {
            let origin = Origin::start().await.unwrap();
            origin.default(products("first"));
            let policy = policy(origin.addr());
            let gateway = start(&folder(), &policy);
            gateway.get("/p/9", &SPANISH).await;
            written(&gateway, 1).await;
            let folder = gateway.stop();
            damage(&folder.join("backstop-data/copies.redb"));
            let gateway = start(&folder, &policy);
            is_logged(&gateway, "the file of copies was damaged").await;
            is_disk_ok(&gateway, 1.0).await;
            serves_from_memory(&gateway, &origin).await;
            expect::no_copy(&gateway.get("/p/9", &SPANISH).await, "missing", "unavailable");
            // The new file works: what was read since survives the next restart.
            written(&gateway, 3).await;
            let gateway = start(&gateway.stop(), &policy);
            let saved = gateway.get("/p/1", &SPANISH).await;
            assert_eq!((saved.status(), saved.text()), (200, product("1", "first", "es")));
        }
    });
}

/// Bytes flipped all over the file: whatever is still served is whole and right; what is not right is missing.
#[test]
fn flipped_bytes_are_never_served() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(large_products());
        let policy = policy(origin.addr());
        let gateway = start(&folder(), &policy);
        for id in 0..COPIES {
            gateway.get(&format!("/p/{id}"), &SPANISH).await;
        }
        written(&gateway, COPIES as u64).await;
        let folder = gateway.stop();
        let file = folder.join("backstop-data/copies.redb");
        let mut bytes = std::fs::read(&file).unwrap();
        let length = bytes.len();
        for at in (length / 4..length).step_by(9973) {
            bytes[at] ^= 0x55;
        }
        std::fs::write(&file, bytes).unwrap();
        let gateway = start(&folder, &policy);
        origin.default(Behaviour::status(503));
        for id in 0..COPIES {
            let answer = gateway.get(&format!("/p/{id}"), &SPANISH).await;
            match answer.status() {
                200 => assert_eq!(answer.text(), large_product(&id.to_string())),
                status => assert_eq!(status, 503, "{:?}", answer.head),
            }
        }
        serves_from_memory(&gateway, &origin).await;
    });
}

fn large_product(id: &str) -> String {
    product(id, &"x".repeat(100_000), "es")
}

fn large_products() -> Behaviour {
    Behaviour::from_fn(|request: &Request| right_answer(request, &"x".repeat(100_000)))
}

/// A small file system of its own, gone with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf, size: &str) -> Self {
        std::fs::create_dir_all(&at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).status();
        assert!(mounted.unwrap().success(), "mounting a small tmpfs needs root");
        Self(at)
    }

    fn grow(&self) {
        let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&self.0).status();
        assert!(grown.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("--lazy").arg(&self.0).status();
        if let Some(folder) = self.0.parent().filter(|_| !std::thread::panicking()) {
            let _left_behind = std::fs::remove_dir_all(folder);
        }
    }
}

/// No room from the start. Every read is answered, live and then from memory; once there is room, the disk is used.
#[test]
fn a_disk_that_is_full_at_the_start_is_used_when_there_is_room() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let folder = folder();
        let disk = SmallDisk::mount(folder.join("backstop-data"), "1m");
        let policy = policy(origin.addr());
        let gateway = start(&folder, &policy);
        is_disk_ok(&gateway, 0.0).await;
        is_logged(&gateway, "the disk cannot be used: copies are kept in memory only").await;
        assert!(warnings(&gateway).await.contains("the disk is full"));
        serves_from_memory(&gateway, &origin).await;
        disk.grow();
        is_disk_ok(&gateway, 1.0).await;
        assert_eq!(warnings(&gateway).await, "[]");
        is_logged(&gateway, "the disk is used again").await;
        serves_from_memory(&gateway, &origin).await;
        written(&gateway, 3).await;
        let gateway = start(&gateway.stop(), &policy);
        let saved = gateway.get("/p/1", &SPANISH).await;
        assert_eq!((saved.status(), saved.text()), (200, product("1", "first", "es")));
    });
}

/// 100 copies of 100 kB on a disk of 6 MiB, which runs full on the way. All of them are served, from memory; after a restart
/// those that found room are whole and right.
#[test]
fn a_disk_that_runs_full_costs_no_request() {
    const MANY: usize = 100;
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(large_products());
        let folder = folder();
        let _disk = SmallDisk::mount(folder.join("backstop-data"), "6m");
        let policy = policy(origin.addr());
        let gateway = start(&folder, &policy);
        for id in 0..MANY {
            let live = gateway.get(&format!("/p/{id}"), &SPANISH).await;
            expect::live(&live, 200, &large_product(&id.to_string()));
        }
        gateway.metrics_until(|metrics| metrics.sum("backstop_store_writes_failed_total", &[]) > 0.0).await;
        is_logged(&gateway, "copies were not written to disk and are kept in memory only").await;
        origin.default(Behaviour::status(503));
        for id in 0..MANY {
            let saved = gateway.get(&format!("/p/{id}"), &SPANISH).await;
            assert_eq!(
                (saved.status(), saved.body.len()),
                (200, large_product(&id.to_string()).len()),
                "{id}"
            );
        }
        let gateway = start(&gateway.stop(), &policy);
        let mut kept = 0;
        for id in 0..MANY {
            let answer = gateway.get(&format!("/p/{id}"), &SPANISH).await;
            match answer.status() {
                200 => {
                    assert_eq!(answer.text(), large_product(&id.to_string()));
                    kept += 1;
                }
                status => assert_eq!(status, 503),
            }
        }
        assert!(kept > 0 && kept < MANY, "{kept}");
    });
}
