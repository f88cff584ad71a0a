//! A socket that moves the clock of the running gateway, for tests alone.
//!
//! `BACKSTOP_TEST_SOCKET` names a Unix socket that is created at the start. Each line is one command and is answered by one
//! line, `ok MONO_NS WALL_NS` once the change is in force and sleepers were woken, or `error WHAT`:
//!
//! | command | effect |
//! |---|---|
//! | `freeze`, `run` | time stands still, or goes on |
//! | `mono +N`, `mono -N` | time since boot moves by N ns |
//! | `wall +N`, `wall -N` | the date moves by N ns |
//! | `at MONO WALL` | time since boot and the date become these, in ns |
//! | `boot HEX` | another boot, named by 32 hexadecimal digits |
//! | `sync on`, `sync off` | whether the kernel vouches for the date |
//! | `panic` | a thread of its own panics |
//! | `hold POINT` | whoever passes this moment of an operation stands still there ([`hold_at`]) |
//! | `held POINT` | nothing; it is answered once somebody stands there |
//! | `release POINT` | they go on |
//! | `get` | nothing |
//!
//! `BACKSTOP_TEST_CLOCK` holds commands for the very start, separated by `;`: they are obeyed before anything is opened, so
//! that a gateway can begin its life under another boot or at another date. `BACKSTOP_KILL_AT` ends the process when an
//! operation passes a moment ([`kill_at`]).

mod hold_at;
pub(crate) mod kill_at;

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstop::clock::{Clock, ManualClock};
use backstop_engine::time::{BootId, Mono, Wall, WallTrust};
use backstop_store::ledger::checkpoint::Checkpoint;

const TICK: Duration = Duration::from_millis(1);

/// The machine's clock, or one that the socket moves if there is a socket.
pub(crate) fn clock() -> Result<Clock, Box<dyn std::error::Error>> {
    let system = Clock::system()?;
    let Some(path) = std::env::var_os("BACKSTOP_TEST_SOCKET") else { return Ok(system) };
    let (clock, hand) = Clock::manual(system.now());
    let frozen = Arc::new(AtomicBool::new(false));
    let first = std::env::var("BACKSTOP_TEST_CLOCK").unwrap_or_default();
    for command in first.split(';').map(str::trim).filter(|command| !command.is_empty()) {
        obey(command, &hand, &frozen)
            .ok_or_else(|| format!("BACKSTOP_TEST_CLOCK: not understood: {command}"))?;
    }
    let listener = UnixListener::bind(path)?;
    std::thread::spawn({
        let (hand, frozen) = (hand.clone(), Arc::clone(&frozen));
        move || tick(&system, &hand, &frozen)
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (hand, frozen) = (hand.clone(), Arc::clone(&frozen));
            std::thread::spawn(move || {
                let _peer_left = serve(&stream, &hand, &frozen);
            });
        }
    });
    Ok(clock)
}

/// Moves the clock as real time does, while it is not frozen.
fn tick(system: &Clock, hand: &ManualClock, frozen: &AtomicBool) {
    let mut last = system.mono();
    loop {
        std::thread::sleep(TICK);
        let now = system.mono();
        let passed = now.since(last).unwrap_or_default();
        last = now;
        if !frozen.load(Ordering::SeqCst) {
            hand.advance(passed);
        }
    }
}

fn serve(stream: &UnixStream, hand: &ManualClock, frozen: &AtomicBool) -> io::Result<()> {
    let mut out = stream;
    for line in BufReader::new(stream).lines() {
        let answer = match obey(&line?, hand, frozen) {
            Some(()) => {
                let now = hand.now();
                format!("ok {} {}\n", now.mono.as_ns(), now.wall.as_unix_ns())
            }
            None => "error not understood\n".to_owned(),
        };
        out.write_all(answer.as_bytes())?;
    }
    Ok(())
}

#[expect(clippy::panic, reason = "it is asked for")]
fn panic() {
    std::panic::panic_any("asked for\nin two lines");
}

fn obey(line: &str, hand: &ManualClock, frozen: &AtomicBool) -> Option<()> {
    let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
    match (command, argument) {
        ("get", "") => {}
        ("panic", "") => {
            let thread = std::thread::Builder::new().name("doomed".into());
            let doomed = thread.spawn(panic).ok()?;
            let _its_own_affair = doomed.join();
        }
        ("freeze", "") => frozen.store(true, Ordering::SeqCst),
        ("run", "") => frozen.store(false, Ordering::SeqCst),
        ("mono", step) => {
            let step: i64 = step.parse().ok()?;
            hand.set(|now| now.mono = Mono::from_ns(now.mono.as_ns().saturating_add_signed(step)));
        }
        ("wall", step) => {
            let step: i64 = step.parse().ok()?;
            hand.set(|now| now.wall = Wall::from_unix_ns(now.wall.as_unix_ns().saturating_add(step)));
        }
        ("at", both) => {
            let (mono, wall) = both.split_once(' ')?;
            let (mono, wall) = (mono.parse().ok()?, wall.parse().ok()?);
            hand.set(|now| (now.mono, now.wall) = (Mono::from_ns(mono), Wall::from_unix_ns(wall)));
        }
        ("boot", digits) => {
            let id = u128::from_str_radix(digits, 16).ok()?;
            hand.set(|now| now.boot = BootId(id.to_be_bytes()));
        }
        ("sync", "on") => hand.set(|now| now.wall_trust = WallTrust::Synchronised),
        ("sync", "off") => hand.set(|now| now.wall_trust = WallTrust::Unsynchronised),
        ("hold", point) => hold_at::hold(Checkpoint::parse(point)?)?,
        ("held", point) => hold_at::arrived(Checkpoint::parse(point)?)?,
        ("release", point) => hold_at::release(Checkpoint::parse(point)?)?,
        _ => return None,
    }
    Some(())
}
