//! Records as rows, and back.

use backstop_engine::operation::{
    ClientKey, Epoch, Fence, Fingerprint, Identity, KeptAnswer, OperationId, Parts, Progress, Record, Scope,
    State,
};
use backstop_engine::time::{Mono, Wall};
use rusqlite::types::Type;
use rusqlite::{Error, Row};

/// The columns, in the order in which [`record`] reads them.
pub(super) const COLUMNS: &str = "id, scope, key, fingerprint, route, upstream_id, captured, created, state, why, \
    fence, epoch, lease_until, due, verify_until, born, settle_from, asked, asked_at, absences, absent_at, \
    was_absent, changed, answer_status, answer_fields, answer_body";

/// Numbers of 64 bits lie in columns of 63 and a sign: what they count here never comes so far.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn moment(moment: Mono) -> i64 {
    number(moment.as_ns())
}

fn mono(stored: i64) -> Mono {
    Mono::from_ns(u64::try_from(stored).unwrap_or(0))
}

/// Pairs of bytes, each with its length before it.
pub(super) fn pairs<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in pairs.flat_map(|(name, value)| [name, value]) {
        // Names and values are bounded far below 4 GiB.
        bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

type Pair<'a> = (&'a str, &'a [u8]);

fn read_pairs(mut bytes: &[u8]) -> Option<Vec<Pair<'_>>> {
    let mut part = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        bytes = rest;
        Some((part, rest.is_empty()))
    };
    let mut pairs = Vec::new();
    loop {
        let (name, _) = part()?;
        let (value, is_last) = part()?;
        pairs.push((std::str::from_utf8(name).ok()?, value));
        if is_last {
            return Some(pairs);
        }
    }
}

fn pairs_of(bytes: &[u8]) -> Option<Vec<Pair<'_>>> {
    if bytes.is_empty() { Some(Vec::new()) } else { read_pairs(bytes) }
}

/// A column holds what was never written there.
fn wrong(column: usize) -> Error {
    Error::FromSqlConversionFailure(column, Type::Blob, "it does not hold what a ledger writes there".into())
}

pub(super) fn record(row: &Row<'_>) -> Result<Record, Error> {
    let captured: Vec<u8> = row.get(6)?;
    let captured = pairs_of(&captured).ok_or_else(|| wrong(6))?.into_iter();
    let captured = captured.map(|(name, value)| {
        let value = std::str::from_utf8(value).map_err(|_| wrong(6))?;
        Ok((name.into(), value.into()))
    });
    let upstream_id: Option<Vec<u8>> = row.get(5)?;
    let route: String = row.get(4)?;
    let identity = Identity {
        id: OperationId::from_bytes(row.get(0)?),
        scope: Scope::from_bytes(row.get(1)?),
        key: ClientKey::from_bytes(row.get(2)?),
        fingerprint: Fingerprint::from_bytes(row.get(3)?),
        route: route.into(),
        upstream_id: upstream_id.map(Into::into),
        captured: captured.collect::<Result<_, Error>>()?,
        created: Wall::from_unix_ns(row.get(7)?),
    };
    Ok(Record { identity, progress: progress(row)?, answer: answer(row)? })
}

fn progress(row: &Row<'_>) -> Result<Progress, Error> {
    let count = |column: usize| -> Result<u64, Error> {
        u64::try_from(row.get::<_, i64>(column)?).map_err(|_| wrong(column))
    };
    let small = |column: usize| u32::try_from(count(column)?).map_err(|_| wrong(column));
    let optional =
        |column: usize| -> Result<Option<Mono>, Error> { Ok(row.get::<_, Option<i64>>(column)?.map(mono)) };
    let state = State::parse(row.get_ref(8)?.as_str()?, row.get_ref(9)?.as_str()?).ok_or_else(|| wrong(8))?;
    let parts = Parts {
        state,
        fence: Fence::new(count(10)?),
        epoch: Epoch::new(count(11)?),
        lease_until: optional(12)?,
        due: optional(13)?,
        verify_until: Wall::from_unix_ns(row.get(14)?),
        born: mono(row.get(15)?),
        settle_from: mono(row.get(16)?),
        asked: small(17)?,
        asked_at: mono(row.get(18)?),
        absences: small(19)?,
        absent_at: mono(row.get(20)?),
        was_absent: row.get(21)?,
        changed: Wall::from_unix_ns(row.get(22)?),
    };
    Progress::restore(parts).map_err(|_| wrong(8))
}

fn answer(row: &Row<'_>) -> Result<Option<KeptAnswer>, Error> {
    let Some(status) = row.get::<_, Option<u16>>(23)? else { return Ok(None) };
    let fields: Option<Vec<u8>> = row.get(24)?;
    let fields = pairs_of(fields.as_deref().unwrap_or_default()).ok_or_else(|| wrong(24))?;
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let body: Option<Vec<u8>> = row.get(25)?;
    Ok(Some(KeptAnswer { status, fields, body: body.map(Into::into) }))
}
