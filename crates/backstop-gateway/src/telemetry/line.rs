//! How a line of the access log is written.
//!
//! The Common Log Format is that of the NCSA and of Apache's `%h %l %u %t "%r" %>s %b`: peer, two hyphens, the time in brackets, the
//! request line in quotes, the status, and the bytes of the content or a hyphen. What a client wrote cannot end a line or a
//! quotation: as Apache does, a quote and a backslash get a backslash before them, and every other byte that is not visible ASCII
//! is written as `\xhh`.

use std::fmt::Write;

use backstop_policy::AccessFormat;
use serde_json::json;

use super::seen::Request;

/// One line, with its end.
pub(super) fn of(format: AccessFormat, with_query: bool, request: &Request<'_>) -> String {
    let mut line = match format {
        AccessFormat::Json => as_json(with_query, request),
        AccessFormat::Common => common(with_query, request),
    };
    line.push('\n');
    line
}

fn as_json(with_query: bool, request: &Request<'_>) -> String {
    let target = target(with_query, request);
    let mut object = json!({
        "time": rfc3339(request.began_unix_ns),
        "peer": request.peer.ip().to_string(),
        "method": request.method.as_str(),
        "path": target,
        "protocol": protocol(request.version),
        "status": request.status,
        "bytes": request.bytes,
        "duration_s": request.duration.as_secs_f64(),
        "outcome": request.outcome,
        "source": request.source,
        "reason": request.reason,
    });
    if let Some(fields) = object.as_object_mut() {
        if let Some(route) = request.route {
            fields.insert("route".into(), route.into());
        }
        if let Some(age) = request.age {
            fields.insert("age_s".into(), age.as_secs().into());
        }
        if let Some(trace) = &request.trace_id {
            fields.insert("trace_id".into(), trace.as_str().into());
        }
    }
    let text = object.to_string();
    if text.chars().any(char::is_control) { without_controls(&text) } else { text }
}

/// JSON may hold DEL and the controls above ASCII as they are; a terminal obeys them.
fn without_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character.is_control() {
            let _never_fails = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn common(with_query: bool, request: &Request<'_>) -> String {
    let mut line = format!("{} - - [{}] \"", request.peer.ip(), clf_time(request.began_unix_ns));
    escape(&mut line, request.method.as_str());
    line.push(' ');
    escape(&mut line, target(with_query, request));
    let bytes = if request.bytes == 0 { "-".to_owned() } else { request.bytes.to_string() };
    let _never_fails = write!(line, " {}\" {} {bytes}", protocol(request.version), request.status);
    line
}

fn target<'a>(with_query: bool, request: &Request<'a>) -> &'a str {
    let target = request.target;
    if with_query { target } else { target.split('?').next().unwrap_or(target) }
}

fn protocol(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_10 => "HTTP/1.0",
        http::Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

fn escape(line: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b' '..=b'~' => line.push(char::from(byte)),
            _ => {
                let _never_fails = write!(line, "\\x{byte:02x}");
            }
        }
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

struct Date {
    year: i64,
    month: usize,
    day: i64,
    second_of_day: i64,
    nanos: i64,
}

/// The date in UTC (the civil calendar, <https://howardhinnant.github.io/date_algorithms.html>).
fn date(unix_ns: i64) -> Date {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, nanos) = (unix_ns.div_euclid(SECOND), unix_ns.rem_euclid(SECOND));
    let (days, second_of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Date { year, month: usize::try_from(month).unwrap_or(1), day, second_of_day, nanos }
}

fn clf_time(unix_ns: i64) -> String {
    let Date { year, month, day, second_of_day, .. } = date(unix_ns);
    let name = MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or("Jan");
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{day:02}/{name}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
}

fn rfc3339(unix_ns: i64) -> String {
    let Date { year, month, day, second_of_day, nanos } = date(unix_ns);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", nanos / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn request<'a>(target: &'a str, method: &'a http::Method) -> Request<'a> {
        Request {
            // 971 211 336 s after 1970: the example of Apache's manual, 13:55:36 at -0700.
            began_unix_ns: 971_211_336_000_000_000,
            peer: "127.0.0.1:4000".parse().unwrap(),
            method,
            target,
            version: http::Version::HTTP_10,
            status: 200,
            bytes: 2326,
            duration: Duration::from_millis(12),
            route: Some("description"),
            outcome: "normal",
            source: "primary",
            reason: "none",
            age: None,
            trace_id: None,
        }
    }

    /// Apache's manual, <https://httpd.apache.org/docs/current/logs.html#common>, in UTC and without a user.
    #[test]
    fn the_common_format_is_that_of_apache() {
        let line = of(AccessFormat::Common, false, &request("/apache_pb.gif", &http::Method::GET));
        assert_eq!(
            line,
            "127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] \"GET /apache_pb.gif HTTP/1.0\" 200 2326\n"
        );
        let nothing = Request { bytes: 0, status: 304, ..request("/", &http::Method::GET) };
        assert!(of(AccessFormat::Common, false, &nothing).ends_with("\" 304 -\n"));
    }

    #[test]
    fn the_query_is_left_out_unless_it_is_asked_for() {
        let get = http::Method::GET;
        let request = request("/p?token=secret", &get);
        for format in [AccessFormat::Common, AccessFormat::Json] {
            assert!(!of(format, false, &request).contains("secret"));
            assert!(of(format, true, &request).contains("/p?token=secret"));
        }
    }

    #[test]
    fn nothing_that_a_client_writes_ends_a_line_or_a_quotation() {
        let get = http::Method::GET;
        let hostile = request("/a\"b\\c\r\nd\te\u{7f}f\u{1b}[31mü", &get);
        let line = of(AccessFormat::Common, true, &hostile);
        assert!(
            line.contains("\"GET /a\\\"b\\\\c\\x0d\\x0ad\\x09e\\x7ff\\x1b[31m\\xc3\\xbc HTTP/1.0\""),
            "{line}"
        );
        for format in [AccessFormat::Common, AccessFormat::Json] {
            let line = of(format, true, &hostile);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert!(!line.trim_end_matches('\n').chars().any(char::is_control), "{line:?}");
        }
        let parsed: serde_json::Value =
            serde_json::from_str(&of(AccessFormat::Json, true, &hostile)).unwrap();
        assert_eq!(parsed["path"], "/a\"b\\c\r\nd\te\u{7f}f\u{1b}[31mü");
    }

    /// Days by hand: a leap day of a year that is divisible by 400, the day before 1970, and the first of March after it.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let day = 86_400_000_000_000_i64;
        let cases = [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (11_016 * day, "2000-02-29T00:00:00.000000Z"),
            (11_017 * day + 1_500_000, "2000-03-01T00:00:00.001500Z"),
            (20_788 * day, "2026-12-01T00:00:00.000000Z"),
        ];
        for (ns, expected) in cases {
            assert_eq!(rfc3339(ns), expected);
        }
        assert_eq!(clf_time(20_788 * day), "01/Dec/2026:00:00:00 +0000");
    }

    #[test]
    fn json_says_what_the_field_says() {
        let post = http::Method::POST;
        let copy = Request {
            age: Some(Duration::from_millis(30_999)),
            outcome: "fallback",
            source: "snapshot",
            reason: "connect",
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
            ..request("/p/1", &post)
        };
        let parsed: serde_json::Value = serde_json::from_str(&of(AccessFormat::Json, false, &copy)).unwrap();
        let expected = json!({
            "time": "2000-10-10T20:55:36.000000Z", "peer": "127.0.0.1", "method": "POST", "path": "/p/1",
            "protocol": "HTTP/1.0", "status": 200, "bytes": 2326, "duration_s": 0.012, "route": "description",
            "outcome": "fallback", "source": "snapshot", "reason": "connect", "age_s": 30,
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
        });
        assert_eq!(parsed, expected);
    }
}
