//! Ends the process, as `kill -9` does, when an operation passes a named moment.
//!
//! `BACKSTOP_KILL_AT=POINT:N` names the moment, a [`Checkpoint`] by its word, and at which passing the process ends, from 1.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use backstop_store::ledger::checkpoint::{self, Checkpoint};
use rustix::process::{Signal, getpid, kill_process};

const VARIABLE: &str = "BACKSTOP_KILL_AT";

/// The moment, and how many passings are left.
static AT: OnceLock<(Checkpoint, AtomicU64)> = OnceLock::new();

/// Does from now on what the environment says, if it says something.
///
/// # Errors
/// If what it says is not understood.
pub(crate) fn arm() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(()) };
    let (point, passings) = parse(&text)
        .ok_or_else(|| format!("{VARIABLE}: not a moment and a number, as `answer_read:3`: {text}"))?;
    if AT.set((point, AtomicU64::new(passings))).is_ok() {
        checkpoint::watch(passed)?;
    }
    Ok(())
}

fn parse(text: &str) -> Option<(Checkpoint, u64)> {
    let (point, passings) = text.split_once(':')?;
    Some((Checkpoint::parse(point)?, passings.parse().ok().filter(|passings| *passings > 0)?))
}

fn passed(point: Checkpoint) {
    let Some((_, left)) = AT.get().filter(|(wanted, _)| *wanted == point) else { return };
    // Those that pass later, while the process ends, find less than nothing.
    if left.fetch_sub(1, Ordering::SeqCst) == 1 {
        let _ended = kill_process(getpid(), Signal::KILL);
        // A thread does not come back from its own kill; this is for a kernel that refused it.
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    const PASSES: [Checkpoint; 4] =
        [Checkpoint::ForwardSent, Checkpoint::AnswerRead, Checkpoint::ForwardSent, Checkpoint::AnswerRead];

    /// The process that ends, if the environment says so.
    #[test]
    fn child() {
        arm().unwrap();
        for point in PASSES {
            checkpoint::pass(point);
            eprintln!("passed {}", point.token());
        }
    }

    /// How the child ended, and which moments it passed.
    fn ended(at: &str) -> (Option<i32>, Vec<String>) {
        let name = concat!(module_path!(), "::child");
        let name = name.split_once("::").unwrap().1;
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(VARIABLE, at)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let passed = said.lines().filter_map(|line| line.strip_prefix("passed ")).map(str::to_owned);
        (output.status.signal(), passed.collect())
    }

    #[test]
    fn it_ends_at_its_moment_and_not_before() {
        const SIGKILL: i32 = 9;
        assert_eq!(ended("forward_sent:1"), (Some(SIGKILL), vec![]));
        let one = vec!["forward_sent".to_owned()];
        assert_eq!(ended("answer_read:1"), (Some(SIGKILL), one.clone()));
        let two = [one, vec!["answer_read".to_owned()]].concat();
        assert_eq!(ended("forward_sent:2"), (Some(SIGKILL), two));
        assert_eq!((ended("forward_sent:3").0, ended("forward_sent:3").1.len()), (None, PASSES.len()));
        assert_eq!(ended("admitted:1").1.len(), PASSES.len());
    }

    #[test]
    fn only_a_moment_and_a_number_are_understood() {
        assert_eq!(parse("query_claimed:12"), Some((Checkpoint::QueryClaimed, 12)));
        for wrong in
            ["", "query_claimed", "query_claimed:0", "query_claimed:", "lunch:1", "query_claimed:1:1"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
