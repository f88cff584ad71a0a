//! The states of breakers as a file.

use std::time::Duration;

use backstop_engine::health::{Health, Saved, SavedPhase};
use backstop_engine::incident::Moment;
use backstop_engine::time::{Mono, Now, WallTrust};
use serde_json::{Value, json};

use super::{By, Held};
use crate::state::Folder;
use crate::state::json::{At, Damaged, VERSION, moment, ns, text as text_of};

/// The file's name.
pub(super) const FILE: &str = "breakers.json";

/// One dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
    pub(super) state: Saved,
    /// The end of what is left, so that time alone changes nothing here until it is over.
    until: Option<Mono>,
    pub(super) held: Option<Held>,
}

/// All of them, and when they stood so.
#[derive(Debug)]
pub(super) struct File {
    written: Moment,
    pub(super) lines: Vec<Line>,
}

const PHASES: [(SavedPhase, &str); 7] = [
    (SavedPhase::Closed, "closed"),
    (SavedPhase::Open, "open"),
    (SavedPhase::HalfOpen, "half_open"),
    (SavedPhase::Ramp, "ramp"),
    (SavedPhase::Watch, "watch"),
    (SavedPhase::ForcedOpen, "forced_open"),
    (SavedPhase::ForcedClosed, "forced_closed"),
];

impl Line {
    /// How a dependency stands. What the policy holds is not written: the next start reads the policy.
    pub(super) fn new(
        name: &str,
        addresses: &[String],
        health: &Health,
        held: Option<&Held>,
        now: Now,
    ) -> Self {
        let mut state = health.save(now.mono);
        let held = held.filter(|held| held.by == By::Operator).cloned();
        if matches!(state.phase, SavedPhase::ForcedOpen | SavedPhase::ForcedClosed) && held.is_none() {
            state.phase = SavedPhase::Closed;
        }
        let until = (state.rest > Duration::ZERO).then(|| now.mono.after(state.rest));
        Self { name: name.into(), addresses: addresses.to_vec(), state, until, held }
    }

    /// Whether both say the same: what is left of the time grows less by itself.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let without_rest =
            |line: &Self| Self { state: Saved { rest: Duration::ZERO, ..line.state }, ..line.clone() };
        without_rest(self) == without_rest(other)
    }

    fn write(&self) -> Value {
        let phase = PHASES.into_iter().find(|(phase, _)| *phase == self.state.phase);
        json!({
            "name": self.name,
            "addresses": self.addresses,
            "phase": phase.map_or("closed", |(_, word)| word),
            "rest_ns": ns(self.state.rest),
            "trips": self.state.trips,
            "usual_calls_per_1000_s": self.state.rate_milli,
            "usual_p95_ns": ns(self.state.p95),
            "held": self.held.as_ref().map(|held| json!({
                "reason": &*held.reason,
                "since": moment(&held.since),
            })),
        })
    }

    fn read(at: &At<'_>) -> Result<Self, Damaged> {
        let word = at.get("phase");
        let known = word.text()?;
        let phase = PHASES.into_iter().find(|(_, word)| *word == known).ok_or_else(|| word.no("phase"))?;
        let held = |at: &At<'_>| -> Result<Held, Damaged> {
            Ok(Held {
                by: By::Operator,
                reason: at.get("reason").text()?.into(),
                since: at.get("since").moment()?,
            })
        };
        Ok(Self {
            name: at.get("name").text()?.into(),
            addresses: at.get("addresses").list(|address| address.text().map(String::from))?,
            state: Saved {
                phase: phase.0,
                rest: at.get("rest_ns").ns()?,
                trips: at.get("trips").u32()?,
                rate_milli: at.get("usual_calls_per_1000_s").u64()?,
                p95: at.get("usual_p95_ns").ns()?,
            },
            until: None,
            held: at.get("held").some().map(held).transpose()?,
        })
    }
}

impl File {
    /// How long ago it was written. Within one boot the boot-time clock says so. Across boots only the date is left, and
    /// only if it may be believed; otherwise nothing has passed: what was open is open for its whole rest, which is never
    /// longer than a live breaker is open.
    pub(super) fn elapsed(&self, now: Now) -> Duration {
        let is_known = self.written.boot == now.boot || now.wall_trust == WallTrust::Synchronised;
        if is_known { Moment::from(now).since(&self.written) } else { Duration::ZERO }
    }
}

/// What an earlier process wrote, unless it is damaged.
pub(super) fn read(folder: &Folder) -> Option<File> {
    folder.load(FILE, |text| {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        parse(&value).map_err(|error| error.to_string())
    })
}

fn parse(value: &Value) -> Result<File, Damaged> {
    let file = At::whole(value)?;
    Ok(File { written: file.get("written").moment()?, lines: file.get("dependencies").list(Line::read)? })
}

/// The file's text.
pub(super) fn text(lines: &[Line], now: Now) -> String {
    text_of(&json!({
        "version": VERSION,
        "written": moment(&Moment::from(now)),
        "dependencies": lines.iter().map(Line::write).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::health::BreakerRules;
    use backstop_engine::time::{BootId, Wall};
    use std::sync::Arc;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(second: u64) -> Now {
        Now {
            mono: Mono::from_ns(second * 1_000_000_000),
            wall: Wall::from_unix_ns(1_772_323_200_000_000_000 + second as i64 * 1_000_000_000),
            boot: BootId([1; 16]),
            wall_trust: WallTrust::Synchronised,
        }
    }

    fn line(health: &Health, held: Option<&Held>, second: u64) -> Line {
        Line::new("catalog", &["127.0.0.1:9001".into()], health, held, at(second))
    }

    fn open() -> Arc<Health> {
        let health =
            Arc::new(Health::new(Some(BreakerRules { min_calls: 1, ..BreakerRules::default() }), None, 1));
        let ticket = health.admit(at(100).mono, true, 0).unwrap();
        ticket.failed(at(100).mono, 1 << 63);
        health
    }

    /// By hand: open for 5 s in the middle of the spread, of which 3 are left after 2.
    #[test]
    fn what_is_written_is_read() {
        let held = Held { by: By::Operator, reason: "a \"reason\"".into(), since: Moment::from(at(1)) };
        let health = open();
        let open = line(&health, None, 102);
        assert_eq!((open.state.phase, open.state.rest), (SavedPhase::Open, 3 * SECOND));
        health.force_closed(at(102).mono);
        let forced = line(&health, Some(&held), 102);
        let text = text(&[open.clone(), forced.clone()], at(102));
        let file = parse(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(file.written, Moment::from(at(102)));
        assert_eq!(file.lines, [Line { until: None, ..open }, Line { until: None, ..forced }]);
        assert_eq!(file.lines[1].state.phase, SavedPhase::ForcedClosed);
    }

    #[test]
    fn time_alone_changes_nothing_until_it_is_over() {
        let health = open();
        let is_like = |one, other| line(&health, None, one).is_like(&line(&health, None, other));
        assert!(is_like(101, 104) && !is_like(104, 105) && is_like(105, 200));
    }

    #[test]
    fn what_the_policy_holds_is_not_written() {
        let held = Held { by: By::Policy, reason: "".into(), since: Moment::from(at(1)) };
        let health = open();
        health.force_open(at(100).mono);
        let line = line(&health, Some(&held), 100);
        assert_eq!((line.state.phase, line.held), (SavedPhase::Closed, None));
    }

    /// In the same boot the date is not asked; under another one it is, if the kernel vouches for it, and it never makes a
    /// negative time.
    #[test]
    fn how_long_ago_it_was_follows_the_clock_that_can_tell() {
        let file = File { written: Moment::from(at(100)), lines: Vec::new() };
        let stepped = |now: Now, seconds: i64| Now {
            wall: Wall::from_unix_ns(now.wall.as_unix_ns() + seconds * 1_000_000_000),
            ..now
        };
        assert_eq!(file.elapsed(stepped(at(107), -3600)), 7 * SECOND);
        let other = Now { boot: BootId([2; 16]), ..stepped(at(3), 104) };
        assert_eq!(file.elapsed(other), 7 * SECOND);
        assert_eq!(file.elapsed(stepped(other, -3600)), Duration::ZERO);
        for wall_trust in [WallTrust::Unsynchronised, WallTrust::RanBack] {
            assert_eq!(file.elapsed(Now { wall_trust, ..other }), Duration::ZERO);
        }
    }

    #[test]
    fn whatever_is_damaged_is_refused() {
        let held = Held { by: By::Operator, reason: "r".into(), since: Moment::from(at(1)) };
        let health = open();
        health.force_open(at(100).mono);
        let good: Value = serde_json::from_str(&text(&[line(&health, Some(&held), 100)], at(100))).unwrap();
        for path in [
            "",
            "/version",
            "/written",
            "/written/boot",
            "/dependencies",
            "/dependencies/0",
            "/dependencies/0/name",
            "/dependencies/0/addresses",
            "/dependencies/0/addresses/0",
            "/dependencies/0/phase",
            "/dependencies/0/rest_ns",
            "/dependencies/0/trips",
            "/dependencies/0/usual_calls_per_1000_s",
            "/dependencies/0/usual_p95_ns",
            "/dependencies/0/held",
            "/dependencies/0/held/reason",
            "/dependencies/0/held/since",
        ] {
            let mut changed = good.clone();
            *changed.pointer_mut(path).unwrap() = Value::Bool(true);
            assert!(parse(&changed).is_err(), "{path}");
        }
        assert!(parse(&good).is_ok());
    }
}
