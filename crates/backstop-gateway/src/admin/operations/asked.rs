//! What is asked of `/operations`: which of them, and what a person decides.

use backstop::operation::member::Json;
use backstop_engine::incident::Moment;
use backstop_engine::operation::{Decision, OperationId, Record, State};
use backstop_engine::time::Wall;
use backstop_store::ledger::{Filter, Resolution};
use serde_json::{Map, Value};

/// How many are listed unless it is said.
const LIMIT: usize = 100;
/// The most that are listed at once.
pub(super) const LIMIT_MAX: usize = 500;

/// Which operations are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) filter: Filter,
    pub(super) limit: usize,
}

/// The query of a list, or what is wrong with it.
pub(super) fn query(query: &str) -> Result<Asked, String> {
    let mut filter =
        Filter { state: None, from: Wall::from_unix_ns(i64::MIN), after: None, most: Filter::MOST };
    let mut limit = LIMIT;
    let mut seen = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).ok_or_else(|| format!("`{}` is no text", value.escape_debug()))?;
        if seen.contains(&name) {
            return Err(format!("`{}` is given twice", name.escape_debug()));
        }
        seen.push(name);
        match name {
            "state" => filter.state = Some(state(&value)?),
            "from" => {
                filter.from = date(&value).ok_or("`from` is a date in UTC such as 2026-01-31T23:59:59Z")?
            }
            "after" => {
                (filter.from, filter.after) = page_end(&value).ok_or("`after` is what `next` has of it")?
            }
            "limit" => limit = number(&value)?,
            _ => {
                let name = name.escape_debug();
                return Err(format!(
                    "`{name}` is not known here: there are `state`, `from`, `after` and `limit`"
                ));
            }
        }
    }
    if seen.contains(&"from") && seen.contains(&"after") {
        return Err("`from` and `after` both say where to begin: give one of them".into());
    }
    Ok(Asked { filter, limit })
}

/// Where the page after this record is.
pub(super) fn next(state: Option<&str>, limit: usize, last: &Record) -> String {
    let state = state.map(|state| format!("state={state}&")).unwrap_or_default();
    let (created, id) = (last.identity.created.as_unix_ns(), last.identity.id);
    format!("/operations?{state}limit={limit}&after={created}.{id}")
}

/// Where a page ended: nanoseconds since 1970, and a name.
fn page_end(text: &str) -> Option<(Wall, Option<OperationId>)> {
    let (created, id) = text.split_once('.')?;
    Some((Wall::from_unix_ns(created.parse().ok()?), Some(id.parse().ok()?)))
}

fn state(text: &str) -> Result<&'static str, String> {
    let known = State::TOKENS.into_iter().find(|token| *token == text);
    known.ok_or_else(|| format!("`state` is one of {}", State::TOKENS.join(", ")))
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=LIMIT_MAX).contains(number));
    number.ok_or_else(|| format!("`limit` is a number from 1 to {LIMIT_MAX}"))
}

/// Percent-encoding undone (RFC 3986 section 2.1).
fn decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}

/// A day, or a moment of it, in UTC (RFC 3339).
fn date(text: &str) -> Option<Wall> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let (day, time) = match text.split_once('T') {
        Some((day, time)) => (day, time.strip_suffix('Z')?),
        None => (text, "00:00:00"),
    };
    let mut parts = day.split('-');
    let [year, month, of_month] =
        [digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?];
    let midnight = day_number(year, month, of_month).checked_mul(DAY_NS)?;
    // What is no day of the calendar is shown as another one.
    let shown = Moment { wall: Wall::from_unix_ns(midnight), ..Moment::default() }.date();
    if parts.next().is_some() || !shown.starts_with(day) {
        return None;
    }
    midnight.checked_add(time_ns(time)?).map(Wall::from_unix_ns)
}

/// The nanosecond of a day.
fn time_ns(text: &str) -> Option<i64> {
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = time.split(':');
    let [hour, minute, second] =
        [digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?];
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    let is_fraction =
        (1..=9).contains(&fraction.len()) && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let fraction_ns: i64 = format!("{fraction:0<9}").parse().ok()?;
    (is_time && is_fraction).then_some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction_ns)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Days since 1970-01-01 in the Gregorian calendar, with years that begin in March so that the leap day is their last.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * from_march + 2) / 5 + day - 1 - 719_468
}

/// A person's decision with name and reason, or what is wrong with it.
pub(super) fn decision(body: &[u8]) -> Result<(Decision, Resolution), String> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    let Value::Object(fields) = value else { return Err("the body is no JSON object".into()) };
    if let Some(other) = fields.keys().find(|key| !matches!(key.as_str(), "outcome" | "by" | "reason")) {
        let other = other.escape_debug();
        return Err(format!("`{other}` is not known here: there are `outcome`, `by` and `reason`"));
    }
    let once = |name: &str| Json::of(body).is_some_and(|json| json.at(&format!("/{name}")).is_some());
    if let Some(twice) = fields.keys().find(|name| !once(name)) {
        return Err(format!("`{twice}` stands twice: what is decided must be said once"));
    }
    let outcome = fields.get("outcome").and_then(Value::as_str).and_then(Decision::parse);
    let outcome = outcome.ok_or("`outcome` is one of succeeded, failed and not_executed")?;
    let resolution = Resolution::new(line(&fields, "by")?, line(&fields, "reason")?);
    Ok((outcome, resolution.map_err(|error| error.to_string())?))
}

/// A text of one line. Others would make a history that shows what did not happen.
fn line<'f>(fields: &'f Map<String, Value>, name: &str) -> Result<&'f str, String> {
    let Some(value) = fields.get(name) else {
        return Err(format!(
            "`{name}` is missing: whoever looks at it later wants to know who decided, and why"
        ));
    };
    let text = value.as_str().map(str::trim).filter(|text| !text.chars().any(ends_a_line));
    text.ok_or_else(|| format!("`{name}` is a text of one line"))
}

/// A control character, or one of the two separators that are none and end a line all the same (Unicode, section 5.8).
fn ends_a_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
#[path = "asked_tests.rs"]
mod tests;
