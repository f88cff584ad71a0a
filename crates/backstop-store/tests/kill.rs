//! Killed at any moment, the store comes back with whole copies, their own dates, and nothing that was confirmed as
//! withdrawn.
//!
//! The process that is killed is this test binary, started again with a folder in its environment.
#![cfg(feature = "redb")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use backstop_store::testing::{block_on, copy, headers, key, now};
use backstop_store::{
    Copies, CopyKey, DiskState, Loaded, PutOutcome, StoreOptions, StoredCopy, Withdrawal, Withdrawn,
};
use http::HeaderMap;

const FOLDER: &str = "BACKSTOP_KILL_FOLDER";
const FIRST: &str = "BACKSTOP_KILL_FIRST";
const KEYS: u64 = 40;

fn options(folder: &Path) -> StoreOptions {
    StoreOptions {
        disk_bytes: 4 << 20,
        memory_bytes: 1 << 20,
        commit_interval: std::time::Duration::from_millis(3),
        ..StoreOptions::new(folder)
    }
}

fn numbered(number: u64) -> CopyKey {
    key(&format!("/products/{number}"), Some("q"))
}

/// The copy of a version: everything in it says which it is.
fn version(number: u64, store: &Copies) -> StoredCopy {
    let ticket = store.begin_read(now(number));
    let length = (number * 7919 % 30_000) as usize;
    let body: Vec<u8> = (0..length).map(|at| (number as usize * 31 + at * 7 + at / 251) as u8).collect();
    StoredCopy { headers: headers(&[("etag", &number.to_string())]), ..copy(body, ticket) }
}

/// Stores and withdraws until it is killed, and says what was confirmed.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let (store, report) = Copies::open(options(Path::new(&folder)), now(first));
    assert_eq!(report.disk, DiskState::Ok, "{report:?}");
    let mut out = std::io::stderr();
    for number in first.. {
        let copy = version(number, &store);
        let ticket = store.begin_read(now(number));
        assert_eq!(store.put(numbered(number % KEYS), copy, ticket, now(number)), PutOutcome::Stored);
        if number % 5 == 0 {
            let gone = number * 13 / 5 % KEYS;
            let withdrawal = if number % 10 == 0 {
                Withdrawal::Target(numbered(gone).target)
            } else {
                Withdrawal::Path { host: "h".into(), path: format!("/products/{gone}").into() }
            };
            if let Withdrawn::Pending(confirmation) = store.withdraw(withdrawal, now(number)) {
                block_on(confirmation).unwrap();
            }
            writeln!(out, "withdrawn {gone} {number}").unwrap();
        }
        if number % 400 == 0 {
            if let Withdrawn::Pending(confirmation) =
                store.withdraw(Withdrawal::Route("r".into()), now(number))
            {
                block_on(confirmation).unwrap();
            }
            (0..KEYS).for_each(|key| writeln!(out, "withdrawn {key} {number}").unwrap());
        }
    }
}

#[test]
fn a_killed_process_leaves_whole_copies_and_no_withdrawn_ones() {
    let folder = tempfile::tempdir().unwrap();
    let kills: u64 = std::env::var("BACKSTOP_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3);
    let mut withdrawn: HashMap<u64, u64> = HashMap::new();
    let mut survived = 0;
    for life in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .env(FIRST, (1 + life * 1_000_000).to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let moment = 30 + (life * 2_654_435_761 % 211) as usize;
        let mut said: Vec<String> = lines.by_ref().take(moment).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        said.extend(lines.map_while(Result::ok));
        assert!(said.len() >= moment, "the process ended by itself: {said:?}");
        for line in &said {
            let mut words = line.split(' ').skip(1).map(|word| word.parse::<u64>());
            // The last line may have been cut.
            if let (Some(Ok(key)), Some(Ok(number))) = (words.next(), words.next())
                && line.starts_with("withdrawn ")
            {
                withdrawn.insert(key, number);
            }
        }

        let (store, report) = Copies::open(options(folder.path()), now(0));
        assert_eq!(
            (&report.disk, report.corrupt, &report.set_aside),
            (&DiskState::Ok, 0, &None),
            "{report:?}"
        );
        for key in 0..KEYS {
            let found = match store.load(&numbered(key), &HeaderMap::new()) {
                Loaded::Disk(pending) => block_on(pending).unwrap(),
                Loaded::Missing => continue,
                other => panic!("{other:?}"),
            };
            let number: u64 = found.headers["etag"].to_str().unwrap().parse().unwrap();
            assert_eq!(number % KEYS, key);
            assert_eq!(*found, version(number, &store), "whole, with its own date");
            let gone = withdrawn.get(&key).copied().unwrap_or(0);
            assert!(number > gone, "version {number} of {key} was withdrawn at {gone}");
            survived += 1;
        }
        assert!(store.close(std::time::Duration::from_secs(60)));
    }
    assert!(survived > 0);
}
