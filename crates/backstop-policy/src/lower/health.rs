//! `breaker`, `recovery` and `probe` of a dependency.

use backstop_engine::health::{Band, BreakerRules, PerMille, RecoveryRules};
use backstop_engine::policy::Origin;

use super::{origin, statuses};
use crate::default;
use crate::read::At;
use crate::settings::ProbeSettings;
use crate::shape::{BreakerTable, GreenTable, ProbeTable, RecoveryTable, RedTable};

/// What is written, or else the default.
macro_rules! or {
    ($table:expr, $key:ident, $default:expr) => {
        $table.$key.as_ref().map_or($default, |written| written.value.0)
    };
}

pub(super) fn breaker(at: &At<BreakerTable>, slow: std::time::Duration) -> BreakerRules {
    let table = &at.value;
    let open = or!(table, open, default::OPEN);
    BreakerRules {
        window: or!(table, window, default::WINDOW),
        min_calls: or!(table, min_calls, default::MIN_CALLS),
        failures: share(or!(table, failures, default::FAILURES)),
        slow,
        slow_share: share(or!(table, slow_share, default::SLOW_SHARE)),
        open,
        open_max: or!(table, open_max, default::OPEN_MAX.max(open)),
        probes: or!(table, probes, default::PROBES),
        forced: table.state.as_ref().map(|state| state.value.0),
        origin: at.origin,
    }
}

/// The rules of a recovery that is written, or the defaults.
pub(super) fn recovery(at: Option<&At<RecoveryTable>>) -> RecoveryRules {
    let defaults = RecoveryRules {
        start: share(default::START),
        up: PerMille(default::UP),
        back: PerMille(default::BACK),
        tick: default::TICK,
        green: band(default::GREEN),
        red: band(default::RED),
        origin: Origin::NONE,
    };
    let Some(at) = at else { return defaults };
    let table = &at.value;
    RecoveryRules {
        start: share(or!(table, start, default::START)),
        up: PerMille(or!(table, up, default::UP)),
        back: PerMille(or!(table, back, default::BACK)),
        tick: or!(table, tick, default::TICK),
        green: table.green.as_ref().map_or(defaults.green, |green| self::green(&green.value)),
        red: table.red.as_ref().map_or(defaults.red, |red| self::red(&red.value)),
        origin: at.origin,
    }
}

fn share(per_mille: u16) -> PerMille {
    PerMille(per_mille.into())
}

fn band(limits: default::Limits) -> Band {
    Band {
        errors: share(limits.errors),
        p95: PerMille(limits.p95),
        db_wait: limits.db_wait,
        in_use: share(limits.in_use),
        backlog: limits.backlog,
    }
}

fn green(table: &GreenTable) -> Band {
    band(default::Limits {
        errors: or!(table, errors, default::GREEN.errors),
        p95: or!(table, p95, default::GREEN.p95),
        db_wait: or!(table, db_wait, default::GREEN.db_wait),
        in_use: or!(table, in_use, default::GREEN.in_use),
        backlog: or!(table, backlog, default::GREEN.backlog),
    })
}

fn red(table: &RedTable) -> Band {
    band(default::Limits {
        errors: or!(table, errors, default::RED.errors),
        p95: or!(table, p95, default::RED.p95),
        db_wait: or!(table, db_wait, default::RED.db_wait),
        in_use: or!(table, in_use, default::RED.in_use),
        backlog: or!(table, backlog, default::RED.backlog),
    })
}

pub(super) fn probe(at: &At<ProbeTable>) -> ProbeSettings {
    let table = &at.value;
    let expected = table.expect.iter().flat_map(|expect| &expect.value.0).map(|status| status.value.0);
    ProbeSettings {
        path: table.path.as_ref().map_or("/".into(), |path| path.value.0.clone()),
        interval: or!(table, interval, default::PROBE_INTERVAL),
        timeout: or!(table, timeout, default::PROBE_TIMEOUT),
        expect: if table.expect.is_some() { statuses(expected) } else { statuses(200..300) },
        origin: origin(Some(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_success_is_expected_by_default() {
        let any = statuses(200..300);
        assert!(any.contains(200) && any.contains(299) && !any.contains(300) && !any.contains(199));
    }
}
