//! Operations and the disk: nothing leaves before it is written down, and nothing leaves where it cannot be.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::bank::{Bank, PAY, policy, problem};
use crate::support::gateway::{folder, output};
use crate::support::{Gateway, run};

/// strace, attached to a gateway until it is dropped.
struct Trace {
    strace: Child,
    file: std::path::PathBuf,
}

impl Trace {
    fn of(gateway: &Gateway) -> Self {
        let file = gateway.folder().join("trace");
        let mut strace = Command::new("strace")
            .args(["-f", "-y", "-s", "400", "-o"])
            .arg(&file)
            .args(["-e", "trace=pwrite64,pwritev,fsync,fdatasync,write,writev,sendto,sendmsg", "-p"])
            .arg(gateway.pid().to_string())
            .stderr(Stdio::piped())
            .spawn()
            .expect("strace, which scripts/test-servers installs");
        let said = BufReader::new(strace.stderr.take().unwrap()).lines().map_while(Result::ok);
        let attached = said.take(64).any(|line| line.contains("attached"));
        assert!(attached, "strace is not allowed to attach");
        Self { strace, file }
    }

    /// Detaches, and what was seen.
    fn end(mut self) -> String {
        let pid = self.strace.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.strace.wait().unwrap();
        std::fs::read_to_string(&self.file).unwrap()
    }
}

/// For each operation by its key: whether the last call on the ledger's log before its first byte left was a sync that had
/// returned. Calls that were begun and finished apart (`resumed`) count when they return.
fn forwards(trace: &str) -> HashMap<String, bool> {
    let (mut is_synced, mut wrote) = (false, false);
    let mut forwards = HashMap::new();
    let mut syncing: HashMap<&str, bool> = HashMap::new();
    for line in trace.lines() {
        let thread = line.split_whitespace().next().unwrap_or_default();
        let on_log = line.contains("ledger.sqlite-wal>");
        let is_sync = line.contains("fsync(") || line.contains("fdatasync(");
        if on_log && !is_sync && line.contains("pwrite") {
            (is_synced, wrote) = (false, true);
        } else if on_log && is_sync && line.contains("<unfinished") {
            syncing.insert(thread, true);
        } else if (on_log && is_sync && line.ends_with("= 0"))
            || ((line.contains("fsync resumed>") || line.contains("fdatasync resumed>"))
                && line.ends_with("= 0")
                && syncing.remove(thread).is_some())
        {
            is_synced = true;
        } else if line.contains("\"POST /payments") {
            let key = line.split("idempotency-key: ").nth(1).and_then(|rest| rest.split("\\r").next());
            forwards.insert(key.expect("its key").to_owned(), is_synced && wrote);
            wrote = false;
        }
    }
    forwards
}

const OPERATIONS: usize = 50;

async fn traced(gateway: &Gateway) -> HashMap<String, bool> {
    let trace = Trace::of(gateway);
    for number in 0..OPERATIONS {
        let key = format!("k-{number}");
        let fields = [("X-Tenant", "ana"), ("Idempotency-Key", &*key), ("Content-Type", "application/json")];
        assert_eq!(gateway.request("POST", PAY, &fields, b"{}").await.status(), 201);
    }
    let forwards = forwards(&trace.end());
    assert_eq!(forwards.len(), OPERATIONS, "every forward was seen");
    forwards
}

/// By the system calls of the built binary; and what it looks like where syncs are none, or the check would prove nothing.
#[test]
fn an_intent_is_synced_before_the_first_byte_leaves() {
    run(async {
        let bank = Bank::open().await;
        let forwards = traced(&bank.gateway).await;
        assert!(forwards.values().all(|is_synced| *is_synced), "{forwards:?}");

        let weak = folder();
        let (source, library) = (weak.join("weak.c"), weak.join("weak.so"));
        std::fs::write(&source, "int fsync(int f) { return 0; }\nint fdatasync(int f) { return 0; }\n")
            .unwrap();
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).status();
        assert!(compiled.expect("a C compiler").success());
        let gateway = Gateway::start_with(&weak, &policy(bank.origin.addr(), ""), "LD_PRELOAD", &library);
        let forwards = traced(&gateway).await;
        assert!(forwards.values().all(|is_synced| !is_synced), "the check does not see weakened durability");
    });
}

/// What the binary says where its ledger cannot be used. It does not begin to serve.
#[test]
fn a_ledger_that_cannot_be_used_is_said_before_anything_is_served() {
    run(async {
        let bank = Bank::open().await;
        let text = policy(bank.origin.addr(), "").text();
        let run_in = |folder: &Path, prepare: &dyn Fn(&Path)| {
            let data = folder.join("backstop-data");
            std::fs::create_dir_all(&data).unwrap();
            prepare(&data);
            std::fs::write(folder.join("policy.toml"), &text).unwrap();
            let (status, _, said) = output(&["run", "policy.toml"], folder);
            assert!(!status.success(), "{said}");
            assert!(said.contains("ledger of operations"), "{said}");
            assert!(!said.contains("listening on"), "{said}");
            said
        };
        let garbage = run_in(&folder(), &|data| {
            std::fs::write(data.join("ledger.key"), [1; 32]).unwrap();
            std::fs::write(data.join("ledger.sqlite"), vec![7; 8192]).unwrap();
        });
        assert!(garbage.contains("ledger.sqlite"), "{garbage}");
        let keyless = run_in(&folder(), &|data| std::fs::write(data.join("ledger.sqlite"), b"").unwrap());
        assert!(keyless.contains("ledger.key") && keyless.contains("backup"), "{keyless}");
        let half = run_in(&folder(), &|data| std::fs::write(data.join("ledger.key"), [1; 5]).unwrap());
        assert!(half.contains("32 bytes"), "{half}");
        let data = bank.gateway.folder().join("backstop-data");
        let anothers = run_in(&folder(), &|other| {
            std::fs::write(other.join("ledger.key"), [1; 32]).unwrap();
            std::fs::copy(data.join("ledger.sqlite"), other.join("ledger.sqlite")).unwrap();
            let _all_of_it_may_be_in_the_log =
                std::fs::copy(data.join("ledger.sqlite-wal"), other.join("ledger.sqlite-wal"));
        });
        assert!(anothers.contains("ledger.key") && anothers.contains("one backup"), "{anothers}");
        let in_the_way = run_in(&folder(), &|data| {
            std::fs::remove_dir(data).unwrap();
            std::fs::write(data, b"a file").unwrap();
        });
        assert!(in_the_way.contains("backstop-data"), "{in_the_way}");
        // A second process on the same folder, while the first one serves.
        let (status, _, said) = output(&["run", "policy.toml"], bank.gateway.folder());
        assert!(!status.success() && said.contains("another process"), "{said}");
        assert_eq!(bank.pay("k-1").await.status(), 201, "the first one goes on");
    });
}

/// The end of the log that was not written whole was never acknowledged; what was is still there.
#[test]
fn a_torn_log_loses_nothing_that_was_acknowledged() {
    run(async {
        let bank = Bank::open().await;
        for key in ["k-1", "k-2"] {
            assert_eq!(bank.pay(key).await.status(), 201);
        }
        let Bank { origin, gateway, .. } = bank;
        let folder = gateway.kill();
        let log = folder.join("backstop-data/ledger.sqlite-wal");
        let mut bytes = std::fs::read(&log).unwrap();
        bytes.extend_from_slice(&[0x5a; 3000]);
        std::fs::write(&log, bytes).unwrap();
        let gateway = Gateway::start_in(&folder, &policy(origin.addr(), ""));
        for key in ["k-1", "k-2"] {
            let fields =
                [("X-Tenant", "ana"), ("Idempotency-Key", key), ("Content-Type", "application/json")];
            let again = gateway.request("POST", PAY, &fields, crate::support::bank::TEN).await;
            assert_eq!((again.status(), again.header("idempotent-replayed")), (201, Some("true")), "{key}");
        }
        assert_eq!(origin.count_of("POST", PAY), 2);
    });
}

/// Nothing that identifies a card, a caller or a key lies on the disk or in the log of the process.
#[test]
fn a_card_number_is_kept_nowhere() {
    const CANARY: &str = "4000056655665556";
    run(async {
        let bank = Bank::with("card_data = true").await;
        let content = format!("{{\"amount\":10,\"card\":\"{CANARY}\"}}");
        let echoes = format!("{{\"status\":\"paid\",\"card\":\"{CANARY}\"}}");
        bank.says(
            backstop_lab::origin::Answer::new(201)
                .header("Content-Type", "application/json")
                .body(echoes.clone()),
        );
        let first =
            bank.pay_with("canary-key-1", &[("Authorization", "Bearer canary-token")], content.as_bytes());
        assert_eq!(first.await.text(), echoes);
        let again = bank.pay_with("canary-key-1", &[], content.as_bytes()).await;
        assert_eq!((again.status(), again.header("backstop-replay")), (201, Some("status-only")));
        bank.says(backstop_lab::origin::Behaviour::close());
        let lost = bank.pay_with("canary-key-2", &[], content.as_bytes()).await;
        assert_eq!((lost.status(), &*problem(&lost)), (502, "outcome-unknown"));
        for text in [CANARY, "canary-key", "canary-token"] {
            let log = bank.gateway.log();
            assert!(!log.iter().any(|line| line.contains(text)), "{text}: {log:#?}");
            for file in files(bank.gateway.folder()) {
                let bytes = std::fs::read(&file).unwrap();
                let is_there = bytes.windows(text.len()).any(|window| window == text.as_bytes());
                assert!(!is_there, "{text} is in {}", file.display());
            }
        }
    });
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.is_file())
        .collect()
}

/// A disk that is full: nothing new is forwarded, and what was forwarded is still answered and recorded.
#[test]
fn a_full_disk_refuses_what_is_new_and_nothing_else() {
    run(async {
        let bank = Bank::open().await;
        assert_eq!(bank.pay("k-1").await.status(), 201);
        let Bank { origin, gateway, .. } = bank;
        let folder = gateway.kill();
        let small = folder.join("small");
        std::fs::create_dir(&small).unwrap();
        let mount =
            |arguments: &[&str]| Command::new(arguments[0]).args(&arguments[1..]).arg(&small).status();
        if std::env::var_os("BACKSTOP_WITHOUT_MOUNT").is_some() {
            return;
        }
        let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs"]);
        assert!(mounted.unwrap().success(), "set BACKSTOP_WITHOUT_MOUNT where nothing can be mounted");
        let text = policy(origin.addr(), "").store("path = \"small/data\"");
        let mut gateway = Gateway::start_in(&folder, &text);
        let pay = |key: String| {
            let gateway = &gateway;
            async move {
                let fields =
                    [("X-Tenant", "ana"), ("Idempotency-Key", &*key), ("Content-Type", "application/json")];
                gateway.request("POST", PAY, &fields, crate::support::bank::TEN).await
            }
        };
        assert_eq!(pay("k-2".into()).await.status(), 201);
        // Fills the rest, behind the ledger's reserve.
        let filled = Command::new("sh")
            .args(["-c", "cat /dev/zero > \"$0\" 2>/dev/null || true"])
            .arg(small.join("filler"))
            .status();
        assert!(filled.unwrap().success());
        let before = origin.count_of("POST", PAY);
        let mut refused = 0;
        for number in 0..400 {
            let answer = pay(format!("f-{number}")).await;
            if answer.status() == 503 {
                assert_eq!(problem(&answer), "ledger-unavailable");
                refused += 1;
                break;
            }
            assert_eq!(answer.status(), 201);
        }
        assert_eq!(refused, 1, "a full disk refuses in the end");
        assert!(origin.count_of("POST", PAY) <= before + 400);
        assert_eq!(pay("k-2".into()).await.status(), 201, "what is known is still told");
        gateway.signal("TERM");
        gateway.wait();
        let _unmounted = mount(&["umount"]);
    });
}
