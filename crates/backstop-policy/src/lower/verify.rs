//! `status_query`, `absence` and `verify` of a route that writes operations.

use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::policy::effect::{
    AbsenceRules, AbsenceVerdict, CalibrationRules, ListRules, ScheduleRules, StatusQueryRules,
    VerificationRules,
};

use super::effect::{answers, share, time};
use crate::default;
use crate::read::At;
use crate::shape::{AbsenceTable, EffectTable, ListTable, StatusQueryTable};
use crate::value::{Pointer, Rate};

/// How an unknown outcome is found out, if it can be asked for.
pub(super) fn verification(table: &EffectTable) -> Option<VerificationRules> {
    let query = &table.status_query.as_ref()?.value;
    Some(VerificationRules {
        query: status_query(query),
        schedule: schedule(table),
        absence: table.absence.as_ref().map(|absence| self::absence(&absence.value)),
        upstream_retention: time(table.upstream_retention.as_ref(), Duration::ZERO),
    })
}

fn status_query(table: &StatusQueryTable) -> StatusQueryRules {
    let path = table.path.as_ref().map(|path| &path.value);
    let echo = table.echo.iter().flat_map(|echo| &echo.value.entries);
    StatusQueryRules {
        before_key: path.map_or("/".into(), |path| path.before.clone()),
        after_key: path.map(|path| path.after.clone()).unwrap_or_default(),
        timeout: time(table.timeout.as_ref(), default::STATUS_TIMEOUT),
        interval: table.rate.as_ref().map_or(default::STATUS_INTERVAL, |rate| interval(rate.value)),
        concurrency: table.concurrency.as_ref().map_or(default::STATUS_CONCURRENCY, |count| count.value.0),
        list: table.list.as_ref().map(|list| self::list(&list.value)),
        echo: echo.map(|(pointer, source)| (pointer.value.0.clone(), source.value.0.clone())).collect(),
        succeeded: answers(table.succeeded.as_ref()),
        failed: answers(table.failed.as_ref()),
        pending: answers(table.pending.as_ref()),
        absent: answers(table.absent.as_ref()),
    }
}

fn list(table: &ListTable) -> ListRules {
    let pointer = |pointer: &At<Pointer>| pointer.value.0.clone();
    let matching = table.matching.iter().flat_map(|matching| &matching.value.entries);
    ListRules {
        items: table.items.as_ref().map(pointer).unwrap_or_default(),
        matching: matching.map(|(member, _)| pointer(member)).collect(),
        more: table.more.as_ref().map(pointer),
    }
}

/// The time from one query to the next, rounded up: never more queries than were written.
fn interval(rate: Rate) -> Duration {
    let ns = rate.per.as_nanos().div_ceil(u128::from(rate.count.max(1)));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

fn absence(table: &AbsenceTable) -> AbsenceRules {
    let is_wanted = table.verdict.as_ref().is_some_and(|verdict| verdict.value.0);
    let calibration = table.calibrate.as_ref().map(|calibrate| CalibrationRules {
        sample: share(calibrate.value.sample.as_ref(), default::SAMPLE),
        must_see_within: time(calibrate.value.must_see_within.as_ref(), Duration::ZERO),
    });
    let header = table.not_after.as_ref().and_then(|not_after| not_after.value.header.as_ref());
    AbsenceRules {
        settle: time(table.settle.as_ref(), Duration::MAX),
        confirmations: confirmations(table),
        spacing: spacing(table),
        not_after: header.map(|header| header.value.0.clone()),
        verdict: match calibration {
            Some(calibration) if is_wanted => AbsenceVerdict::NotExecuted(calibration),
            calibration => AbsenceVerdict::Attention(calibration),
        },
    }
}

/// How many absences that count are needed.
pub(crate) fn confirmations(table: &AbsenceTable) -> u32 {
    table.confirmations.as_ref().map_or(default::CONFIRMATIONS, |count| count.value.0)
}

/// The least time between two absences that count.
pub(crate) fn spacing(table: &AbsenceTable) -> Duration {
    time(table.spacing.as_ref(), default::SPACING)
}

/// When a status is asked for.
pub(crate) fn schedule(table: &EffectTable) -> ScheduleRules {
    let written = table.verify.as_ref().map(|verify| &verify.value);
    let get = |written: Option<&_>, default| time(written, default);
    let known = table.upstream_retention.as_ref().map(|known| known.value.0.saturating_mul(4) / 5);
    let deadline = known.map_or(default::VERIFY_DEADLINE, |known| default::VERIFY_DEADLINE.min(known));
    ScheduleRules {
        first: get(written.and_then(|verify| verify.first.as_ref()), default::VERIFY_FIRST),
        factor: PerMille(
            written
                .and_then(|verify| verify.factor.as_ref())
                .map_or(default::VERIFY_FACTOR, |factor| factor.value.0),
        ),
        cap: get(written.and_then(|verify| verify.cap.as_ref()), default::VERIFY_CAP),
        deadline: get(written.and_then(|verify| verify.deadline.as_ref()), deadline),
        attention_poll: get(
            written.and_then(|verify| verify.attention_poll.as_ref()),
            default::ATTENTION_POLL,
        ),
    }
}
