//! What a dependency's answer says about the dependency itself.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backstop_engine::time::Wall;
use http::HeaderMap;
use http::header::{HeaderName, RETRY_AFTER};

use crate::lists::text_members;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// The metric that tells how long the database kept the service waiting.
const DATABASE: &str = "db";
/// Longer than anything that is waited for.
const MOST: Duration = Duration::from_secs(86_400);

/// When the dependency asks to be called again (RFC 9110 section 10.2.3): seconds, or a date by our own clock. What is neither
/// is as if absent.
pub(crate) fn retry_after(headers: &HeaderMap, now: Wall) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().map_or(MOST, Duration::from_secs).min(MOST));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let now = UNIX_EPOCH.checked_add(Duration::from_nanos(u64::try_from(now.as_unix_ns()).ok()?))?;
    Some(SystemTime::duration_since(&date, now).unwrap_or(Duration::ZERO).min(MOST))
}

/// The duration of the metric `db` in `Server-Timing`, in ms as that field has it. Of several the longest.
pub(crate) fn database_wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(SERVER_TIMING).iter().filter_map(|line| line.to_str().ok());
    let metrics = lines.flat_map(|line| text_members(line, b','));
    let waits = metrics.filter_map(|metric| {
        let mut parts = text_members(metric, b';');
        parts.next().filter(|name| name.eq_ignore_ascii_case(DATABASE))?;
        let duration = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("dur").then(|| value.trim().trim_matches('"'))
        })?;
        let ms: f64 = duration.parse().ok()?;
        Duration::try_from_secs_f64(ms / 1000.0).ok()
    });
    waits.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(name: &HeaderName, lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(name.clone(), HeaderValue::from_static(line));
        }
        headers
    }

    /// RFC 9110 section 10.2.3, by hand: the date is 30 s after the epoch day's noon.
    #[test]
    fn seconds_or_a_date_say_when_to_call_again() {
        let noon = Wall::from_unix_ns(43_200_000_000_000);
        let after = |text| retry_after(&with(&RETRY_AFTER, &[text]), noon);
        assert_eq!(after("120"), Some(Duration::from_secs(120)));
        assert_eq!(after("0"), Some(Duration::ZERO));
        assert_eq!(after("Thu, 01 Jan 1970 12:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("Thu, 01 Jan 1970 11:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(after("99999999999999999999"), Some(MOST));
        for nothing in ["", "-1", "1.5", "soon"] {
            assert_eq!(after(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_database_is_one_metric_among_others() {
        let wait = |lines: &[&'static str]| database_wait(&with(&SERVER_TIMING, lines));
        let ms = |ms: f64| Some(Duration::from_secs_f64(ms / 1000.0));
        assert_eq!(wait(&["db;dur=5.5"]), ms(5.5));
        assert_eq!(wait(&["cache;desc=miss, DB ; desc=\"x\" ; Dur=\"12\", app;dur=40"]), ms(12.0));
        assert_eq!(wait(&["db;dur=1", "db;dur=3"]), ms(3.0));
        // What only a description says is no metric, and no duration.
        assert_eq!(wait(&["app;desc=\"slow, db;dur=99\";dur=4, db;desc=\"a;dur=50\";dur=2"]), ms(2.0));
        assert_eq!(wait(&["app;desc=\"\\\", db;dur=99\", db;dur=2"]), ms(2.0));
        for nothing in
            [&[][..], &["db"], &["db;dur="], &["db;dur=-1"], &["db;dur=x"], &["dbx;dur=1"], &["app;dur=1"]]
        {
            assert_eq!(wait(nothing), None, "{nothing:?}");
        }
    }
}
