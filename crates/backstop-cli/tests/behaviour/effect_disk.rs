//! Operations and the disk: nothing leaves before it is written down, and nothing leaves where it cannot be.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use backstop_lab::origin::Gate;

use crate::support::bank::{Bank, PAY, keyed, paid, pay_at, policy, problem};
use crate::support::gateway::{folder, output};
use crate::support::preload::{NO_SYNC, library};
use crate::support::{BOUND, Gateway, run};

/// strace, attached to a gateway until it is dropped.
struct Trace {
    strace: Child,
    file: PathBuf,
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

impl Drop for Trace {
    fn drop(&mut self) {
        // It has ended already where the test came to its end. One that is killed lets the gateway go.
        let _ended_already = self.strace.kill();
        let _ended = self.strace.wait();
    }
}

/// For each operation by its key: whether its intent was synced before its first byte left. Operations come one after another, so
/// between two forwards the outcome of the one and the intent of the next are written to the ledger's log, each with a sync that
/// has returned: two such groups, of which the last one ends before the forward. Before the first there is the intent alone. Calls
/// that were begun and finished apart (`resumed`) count when they return.
fn forwards(trace: &str) -> HashMap<String, bool> {
    let (mut has_unsynced, mut groups, mut wanted) = (false, 0, 1);
    let mut forwards = HashMap::new();
    let mut syncing: HashSet<&str> = HashSet::new();
    for line in trace.lines() {
        let thread = line.split_whitespace().next().unwrap_or_default();
        let on_log = line.contains("ledger.sqlite-wal>");
        let is_sync = line.contains("fsync(") || line.contains("fdatasync(");
        let has_returned = line.ends_with("= 0");
        let is_resumed = line.contains("fsync resumed>") || line.contains("fdatasync resumed>");
        if on_log && !is_sync && line.contains("pwrite") {
            has_unsynced = true;
        } else if on_log && is_sync && line.contains("<unfinished") {
            syncing.insert(thread);
        } else if has_returned && ((on_log && is_sync) || (is_resumed && syncing.remove(thread))) {
            groups += usize::from(has_unsynced);
            has_unsynced = false;
        } else if line.contains("\"POST /payments") {
            let key = line.split("idempotency-key: ").nth(1).and_then(|rest| rest.split("\\r").next());
            forwards.insert(key.expect("its key").to_owned(), !has_unsynced && groups >= wanted);
            (groups, wanted) = (0, 2);
        }
    }
    forwards
}

/// What the check makes of three operations: with everything; without any intent; with intents that are synced too late; and
/// with intents that are written and never synced.
#[test]
fn the_check_finds_each_forward_without_its_intent() {
    const WRITE: &str = "7 pwrite64(9</d/ledger.sqlite-wal>, \"a\"..., 4096, 56) = 4096";
    const SYNC: &str = "7 fdatasync(9</d/ledger.sqlite-wal>) = 0";
    const BEGUN: &str = "7 fdatasync(9</d/ledger.sqlite-wal> <unfinished ...>";
    const RESUMED: &str = "7 <... fdatasync resumed>) = 0";
    let of = |intent: &[&str], late: &[&str]| {
        let mut lines = Vec::new();
        for key in ["k-0", "k-1", "k-2"] {
            lines.extend(intent.iter().map(|line| (*line).to_owned()));
            lines.push(format!(
                "5 writev(12<socket:[1]>, [{{\"POST {PAY} HTTP/1.1\\r\\nidempotency-key: {key}\\r\\n\"}}"
            ));
            lines.extend(late.iter().chain(&[WRITE, SYNC]).map(|line| (*line).to_owned()));
        }
        let found = forwards(&lines.join("\n"));
        ["k-0", "k-1", "k-2"].map(|key| found[key])
    };
    assert_eq!(of(&[WRITE, SYNC], &[]), [true; 3]);
    assert_eq!(of(&[WRITE, WRITE, BEGUN, RESUMED], &[]), [true; 3]);
    assert_eq!(of(&[], &[]), [false; 3]);
    assert_eq!(of(&[SYNC, SYNC], &[]), [false; 3], "a sync of nothing");
    assert_eq!(of(&[WRITE], &[SYNC]), [false; 3]);
    assert_eq!(of(&[WRITE, BEGUN], &[RESUMED]), [false; 3]);
    assert_eq!(of(&[WRITE], &[]), [false; 3]);
}

const OPERATIONS: usize = 50;

async fn traced(gateway: &Gateway) -> HashMap<String, bool> {
    let trace = Trace::of(gateway);
    for number in 0..OPERATIONS {
        let key = format!("k-{number}");
        assert_eq!(gateway.request("POST", PAY, &keyed(&key), b"{}").await.status(), 201);
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
        let policy = policy(bank.origin.addr(), "");
        let gateway = Gateway::start_with(&weak, &policy, "LD_PRELOAD", library(&weak, NO_SYNC));
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
            let again = pay_at(&gateway, key).await;
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

/// What `redact` names is told to the first client alone. The rest is kept, and told again.
#[test]
fn what_is_redacted_is_kept_nowhere() {
    const CARD: &str = "4000056655665556";
    const TOKEN: &str = "tok_9f8e7d6c5b4a";
    run(async {
        let bank = Bank::with("redact = [\"/card/number\", \"/token\"]").await;
        let answer = |card: &str, token: &str| {
            format!(
                r#"{{"status":"paid","id":"visible-p-1","card":{{"number":"{card}","brand":"visa"}},"token":"{token}"}}"#
            )
        };
        let whole = answer(CARD, TOKEN);
        bank.says(
            backstop_lab::origin::Answer::new(201)
                .header("Content-Type", "application/json")
                .body(whole.clone()),
        );
        let first = bank.pay("k-1").await;
        assert_eq!((first.status(), first.text()), (201, whole));
        let check = |again: &backstop_lab::client::Response| {
            assert_eq!((again.status(), again.text()), (201, answer("[redacted]", "[redacted]")));
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            assert_eq!(again.header("content-type"), Some("application/json"));
        };
        check(&bank.pay("k-1").await);
        let is_in = |folder: &Path, text: &str| -> Vec<PathBuf> {
            let holds = |file: &PathBuf| {
                let bytes = std::fs::read(file).unwrap();
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            };
            files(folder).into_iter().filter(holds).collect()
        };
        let Bank { origin, gateway, .. } = bank;
        // While it runs, and as a kill leaves it.
        for text in [CARD, TOKEN] {
            assert_eq!(is_in(gateway.folder(), text), [""; 0].map(PathBuf::from));
            assert!(!gateway.log().iter().any(|line| line.contains(text)), "{:#?}", gateway.log());
        }
        let log = gateway.folder().join("backstop-data/ledger.sqlite-wal");
        assert_eq!(is_in(gateway.folder(), "visible-p-1"), [log], "the search finds what is there");
        let policy = policy(origin.addr(), "redact = [\"/card/number\", \"/token\"]");
        let gateway = gateway.restart_after_kill(&policy);
        check(&pay_at(&gateway, "k-1").await);
        for text in [CARD, TOKEN] {
            assert_eq!(is_in(gateway.folder(), text), [""; 0].map(PathBuf::from));
        }
        assert_eq!(origin.count_of("POST", PAY), 1);
    });
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.is_file())
        .collect()
}

/// A small tmpfs, unmounted when dropped. It may still be in use then, after a failure.
struct Small(PathBuf);

impl Small {
    /// Where nothing can be mounted, and that is said, nothing is.
    fn mount(folder: PathBuf, size: &str) -> Option<Self> {
        if std::env::var_os("BACKSTOP_WITHOUT_MOUNT").is_some() {
            return None;
        }
        std::fs::create_dir(&folder).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
        assert!(mounted.unwrap().success(), "set BACKSTOP_WITHOUT_MOUNT where nothing can be mounted");
        Some(Self(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _nothing_more_can_be_done = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A disk that is full: nothing new is forwarded, and what was forwarded is still answered and recorded.
#[test]
fn a_full_disk_refuses_what_is_new_and_nothing_else() {
    run(async {
        let bank = Bank::open().await;
        assert_eq!(bank.pay("k-1").await.status(), 201);
        let Bank { origin, gateway, .. } = bank;
        let folder = gateway.kill();
        let Some(small) = Small::mount(folder.join("small"), "80m") else { return };
        let gateway = Gateway::start_in(&folder, &policy(origin.addr(), "").store("path = \"small/data\""));
        assert_eq!(pay_at(&gateway, "k-2").await.status(), 201);
        // One is under way when the disk becomes full.
        let gate = Gate::new();
        origin.default(paid().gate(&gate));
        let filling = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            // Fills the rest, behind the ledger's reserve.
            let filled = Command::new("sh")
                .args(["-c", "cat /dev/zero > \"$0\" 2>/dev/null || true"])
                .arg(small.0.join("filler"))
                .status();
            assert!(filled.unwrap().success());
            gate.open();
            let mut new = 0;
            loop {
                let answer = pay_at(&gateway, &format!("f-{new}")).await;
                if answer.status() != 201 {
                    break (new, answer);
                }
                new += 1;
                assert!(new < 400, "a full disk refuses in the end");
            }
        };
        let (under_way, (new, refused)) = futures_util::future::join(pay_at(&gateway, "k-3"), filling).await;
        assert_eq!(under_way.status(), 201, "what was forwarded is answered");
        assert_eq!((refused.status(), &*problem(&refused)), (503, "ledger-unavailable"));
        // The refused one was not forwarded.
        assert_eq!(origin.count_of("POST", PAY), 3 + new);
        assert_eq!(pay_at(&gateway, "k-2").await.status(), 201, "what is known is still told");
        let folder = gateway.stop();
        // What was paid while the disk was full is recorded: with room, the next life knows it.
        std::fs::remove_file(small.0.join("filler")).unwrap();
        let gateway = Gateway::start_in(&folder, &policy(origin.addr(), "").store("path = \"small/data\""));
        let known = ["k-2".to_owned(), "k-3".to_owned()]
            .into_iter()
            .chain((0..new).map(|number| format!("f-{number}")));
        for key in known {
            let again = pay_at(&gateway, &key).await;
            assert_eq!((again.status(), again.header("idempotent-replayed")), (201, Some("true")), "{key}");
        }
        assert_eq!(origin.count_of("POST", PAY), 3 + new);
        println!("{new} new operations found room on the full disk");
        let folder = gateway.stop();
        drop(small);
        std::fs::remove_dir_all(folder).unwrap();
    });
}
