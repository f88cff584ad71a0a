//! `[route.NAME.effect]`: the rules of a route that writes operations, with their defaults.

use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::policy::StatusSet;
use backstop_engine::policy::effect::{
    AnswerRule, EffectRules, Fingerprint, KeySource, OutcomeRules, RetentionRules, Scope, SendRules,
    StoredBody,
};

use super::verify::verification;
use super::{origin, statuses};
use crate::check::RouteView;
use crate::default;
use crate::read::{At, List, OneOrMany};
use crate::shape::{AnswerTable, Common, EffectTable, OutcomeTable};
use crate::value::Pointer;

/// The rules of a route of this class. `gateway_bytes` is the gateway's limit on request bodies.
pub(super) fn rules(route: RouteView<'_>, table: &EffectTable, gateway_bytes: u64) -> EffectRules {
    EffectRules {
        key: key(table),
        send: SendRules {
            header: send_header(table),
            form: table
                .send
                .as_ref()
                .and_then(|send| send.value.form.as_ref())
                .map(|form| form.value.0)
                .unwrap_or_default(),
        },
        scope: scope(table).unwrap_or(Scope::Principal),
        outcome: table.outcome.as_ref().map(|outcome| self::outcome(&outcome.value)).unwrap_or_default(),
        verification: verification(table),
        unknown_answer: table.unknown_answer.as_ref().map(|answer| answer.value.0).unwrap_or_default(),
        fingerprint: fingerprint(table),
        stored_body: match stores_bodies(table) {
            true => StoredBody::Redacted(pointers(table.redact.iter().flat_map(|list| &list.value.0))),
            false => StoredBody::Nothing,
        },
        body_bytes: body_bytes(&table.common, gateway_bytes),
        retention: retention(table),
        origin: route.entry.at.origin,
    }
}

fn key(table: &EffectTable) -> KeySource {
    let header = || KeySource::Header(default::OPERATION_HEADER.into());
    table.operation_id.as_ref().map_or_else(header, |key| key.value.0.clone())
}

/// The header in which the upstream is told the operation's key.
pub(crate) fn send_header(table: &EffectTable) -> Box<str> {
    let written = table.send.as_ref().and_then(|send| send.value.header.as_ref());
    match (written, key(table)) {
        (Some(header), _) => header.value.0.clone(),
        (None, KeySource::Header(header)) => header,
        (None, KeySource::Body(_)) => default::OPERATION_HEADER.into(),
    }
}

/// Among whom keys are told apart; `None` if that is neither written nor follows from an authorizer.
pub(crate) fn scope(table: &EffectTable) -> Option<Scope> {
    let written = table.scope.as_ref().map(|scope| scope.value.0.clone());
    written.or_else(|| table.common.authorizer.is_some().then_some(Scope::Principal))
}

/// Whether bodies of answers are kept.
pub(crate) fn stores_bodies(table: &EffectTable) -> bool {
    let is_open = !has_card_data(table) && scope(table) != Some(Scope::Route);
    table.store_body.as_ref().map_or(is_open, |choice| choice.value.0)
}

/// Whether answers may hold data of payment cards.
pub(crate) fn has_card_data(table: &EffectTable) -> bool {
    table.card_data.as_ref().is_some_and(|card_data| card_data.value)
}

/// Largest request body: what the route says, else the default or the gateway's if that is less.
pub(crate) fn body_bytes(common: &Common, gateway_bytes: u64) -> u64 {
    let written = common.limits.as_ref().and_then(|limits| limits.value.body.as_ref());
    written.map_or(default::EFFECT_BODY_BYTES.min(gateway_bytes), |body| body.value.0)
}

/// How long what is kept.
pub(crate) fn retention(table: &EffectTable) -> RetentionRules {
    let written = table.retention.as_ref().map(|retention| &retention.value);
    let body = written.and_then(|written| written.body.as_ref());
    let tombstone = written.and_then(|written| written.tombstone.as_ref());
    RetentionRules {
        body: body.map_or(default::KEEP_BODY, |body| body.value.0),
        tombstone: tombstone.map_or(default::KEEP_TOMBSTONE, |tombstone| tombstone.value.0),
    }
}

fn outcome(table: &OutcomeTable) -> OutcomeRules {
    let refused = table.refused.iter().flat_map(|list| &list.value.0).map(|rule| answer(&rule.value.answer));
    OutcomeRules {
        succeeded: answers(table.succeeded.as_ref()),
        pending: answers(table.pending.as_ref()),
        refused: refused.collect(),
    }
}

/// Kinds of answers.
pub(super) fn answers(list: Option<&At<List<AnswerTable>>>) -> Vec<AnswerRule> {
    list.into_iter().flat_map(|list| &list.value.0).map(|rule| answer(&rule.value)).collect()
}

fn answer(table: &AnswerTable) -> AnswerRule {
    let status: StatusSet =
        statuses(table.status.iter().flat_map(|status| &status.value.0).map(|status| status.value.0));
    let members = table.json.iter().flat_map(|json| &json.value.entries);
    let json = members.map(|(pointer, values)| {
        let values = values.value.0.iter().map(|value| value.value.0.clone());
        (pointer.value.0.clone(), values.collect())
    });
    AnswerRule { status, json: json.collect(), origin: origin(table.status.as_ref()) }
}

fn fingerprint(table: &EffectTable) -> Fingerprint {
    let written = table.fingerprint.as_ref().map(|fingerprint| &fingerprint.value);
    let list = |list: Option<&At<OneOrMany<Pointer>>>| list.map(|list| pointers(&list.value.0));
    match written.map(|written| (list(written.only.as_ref()), list(written.ignore.as_ref()))) {
        Some((Some(only), _)) => Fingerprint::Only(only),
        Some((None, Some(ignore))) => Fingerprint::Without(ignore),
        Some((None, None)) | None => Fingerprint::Whole,
    }
}

fn pointers<'a>(list: impl IntoIterator<Item = &'a At<Pointer>>) -> Vec<Box<str>> {
    list.into_iter().map(|pointer| pointer.value.0.clone()).collect()
}

/// What is written, or the default.
pub(super) fn time(written: Option<&At<crate::value::PositiveTime>>, default: Duration) -> Duration {
    written.map_or(default, |time| time.value.0)
}

/// What is written in per mille, or the default.
pub(super) fn share(written: Option<&At<crate::value::PositivePercent>>, default: u16) -> PerMille {
    PerMille(written.map_or(default, |share| share.value.0).into())
}
