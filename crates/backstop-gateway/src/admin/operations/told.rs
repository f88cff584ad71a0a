//! Operations as JSON, for operators.

use std::time::Duration;

use backstop_engine::incident::Moment;
use backstop_engine::operation::{Epoch, Record, State};
use backstop_engine::time::{Now, Wall};
use backstop_store::ledger::{Actor, HistoryEvent, Shown};
use serde_json::{Value, json};

/// A state in its two words.
pub(super) fn state(state: State) -> Value {
    json!({ "state": state.token(), "why": state.why() })
}

/// What a list has of it.
pub(super) fn brief(record: &Record, now: &Now) -> Value {
    let parts = record.progress.parts();
    json!({
        "id": record.identity.id.to_string(),
        "state": parts.state.token(),
        "why": parts.state.why(),
        "route": &*record.identity.route,
        "began": date(record.identity.created),
        "age_seconds": age(record.identity.created, now),
        "since": date(parts.changed),
        "in_state_seconds": age(parts.changed, now),
    })
}

/// All that is shown of one. `epoch`: the present life of the ledger.
pub(super) fn whole(shown: &Shown, epoch: Epoch, now: &Now) -> Value {
    let Shown { record, history } = shown;
    let parts = record.progress.parts();
    // Moments of another life mean nothing in this one.
    let next = parts.due.filter(|_| parts.epoch == epoch).map(|due| whole_seconds_up(now.mono.until(due)));
    let verification = parts.state.is_open().then(|| {
        json!({
            "until": date(parts.verify_until),
            "asked": parts.asked,
            "absences": parts.absences,
            "next_seconds": next,
        })
    });
    let answer = record.answer.as_ref().map(|answer| {
        json!({
            "status": answer.status,
            "fields": answer.fields.iter().map(|(name, _)| &**name).collect::<Vec<_>>(),
            "has_content": answer.body.is_some(),
        })
    });
    let mut whole = brief(record, now);
    if let Value::Object(fields) = &mut whole {
        fields.insert("verification".into(), json!(verification));
        fields.insert("answer".into(), json!(answer));
        fields.insert("history".into(), history.iter().map(event).collect());
    }
    whole
}

fn event(event: &HistoryEvent) -> Value {
    let (by, reason) = match &event.actor {
        Actor::Person(person) => (Some(person.by()), Some(person.reason())),
        Actor::Reporter | Actor::Time | Actor::Recovery => (None, None),
    };
    json!({
        "at": date(event.at),
        "actor": event.actor.token(),
        "from": state(event.from),
        "to": state(event.to),
        "by": by,
        "reason": reason,
    })
}

pub(super) fn date(wall: Wall) -> String {
    Moment { wall, ..Moment::default() }.date()
}

/// Whole seconds, rounded down. What lies ahead is no age.
fn age(since: Wall, now: &Now) -> u64 {
    now.wall.since(since).unwrap_or_default().as_secs()
}

fn whole_seconds_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
