//! Behaviours and rules in JSON, for the control face.

use std::time::Duration;

use serde::Deserialize;

use super::{Answer, Behaviour, CutAt, Date, Framing, Matcher, Then};

/// A rule in JSON: whom it is for, and what is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// The method; any when left out.
    pub method: Option<String>,
    /// The exact path. Not together with `prefix`.
    pub path: Option<String>,
    /// A prefix of the path.
    pub prefix: Option<String>,
    /// One behaviour, or several that follow each other.
    pub behaviours: Vec<BehaviourSpec>,
}

/// A behaviour in JSON: a named fault (`fault`), or an answer (`status` and so on).
///
/// ```json
/// {"fault": "hang", "times": 2}
/// {"status": 503, "body": "{}", "headers": [["Retry-After", "7"]], "delay_ms": 250}
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BehaviourSpec {
    /// The fault's name: `hang`, `close`, `reset`, `garbage`, `html_200`, `empty_200`, `wrong_json`,
    /// `half_json_close_delimited`, `half_json_whole_framing`, `truncated`, `truncated_chunked`,
    /// `reset_after_head`, `reset_mid_body`, `half_head`, `drip_forever` or `slow_head`.
    pub fault: Option<String>,
    /// Status of an answer; 200 when left out.
    pub status: Option<u16>,
    /// Header lines of an answer.
    pub headers: Vec<(String, String)>,
    /// Body of an answer.
    pub body: String,
    /// Chunk size; `Content-Length` framing when left out.
    pub chunked: Option<usize>,
    /// Whether the close ends the body.
    pub close_delimited: bool,
    /// Payload bytes after which an answer is cut.
    pub cut_after: Option<usize>,
    /// Whether a cut is a reset instead of a close.
    pub cut_by_reset: bool,
    /// Seconds by which `Date` lies ahead.
    pub date_ahead_s: u64,
    /// Interval of `drip_forever` and `slow_head`, in milliseconds; 100 when left out.
    pub interval_ms: Option<u64>,
    /// Delay before the first byte, in milliseconds.
    pub delay_ms: u64,
    /// How many requests it holds for; for ever when left out.
    pub times: Option<u32>,
}

/// Why a rule in JSON is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No fault has this name.
    #[error("no fault is named {0:?}")]
    UnknownFault(String),
    /// Both a path and a prefix were given.
    #[error("a rule has a path or a prefix, not both")]
    PathAndPrefix,
    /// No behaviour was given.
    #[error("a rule needs a behaviour")]
    NoBehaviour,
}

impl RuleSpec {
    /// The matcher it describes.
    ///
    /// # Errors
    ///
    /// With both a path and a prefix.
    pub fn matcher(&self) -> Result<Matcher, SpecError> {
        let matcher = match (&self.path, &self.prefix) {
            (Some(_), Some(_)) => return Err(SpecError::PathAndPrefix),
            (Some(path), None) => Matcher::path(path),
            (None, Some(prefix)) => Matcher::prefix(prefix),
            (None, None) => Matcher::any(),
        };
        Ok(match &self.method {
            Some(method) => matcher.method(method),
            None => matcher,
        })
    }

    /// The behaviours it describes.
    ///
    /// # Errors
    ///
    /// When there is none, or a fault's name is unknown.
    pub fn behaviours(&self) -> Result<Vec<Behaviour>, SpecError> {
        if self.behaviours.is_empty() {
            return Err(SpecError::NoBehaviour);
        }
        self.behaviours.iter().map(BehaviourSpec::behaviour).collect()
    }
}

impl BehaviourSpec {
    /// The behaviour it describes.
    ///
    /// # Errors
    ///
    /// When its fault's name is unknown.
    pub fn behaviour(&self) -> Result<Behaviour, SpecError> {
        let acting = match &self.fault {
            Some(name) => self.fault(name)?,
            None => self.answer().into(),
        };
        let limited = match self.times {
            Some(times) => acting.times(times),
            None => acting,
        };
        Ok(if self.delay_ms == 0 { limited } else { limited.delay(Duration::from_millis(self.delay_ms)) })
    }

    fn answer(&self) -> Answer {
        let mut answer = Answer::new(self.status.unwrap_or(200)).body(self.body.clone());
        for (name, value) in &self.headers {
            answer = answer.header(name, value);
        }
        if let Some(chunk) = self.chunked {
            answer = answer.chunked(chunk);
        } else if self.close_delimited {
            answer = answer.framing(Framing::CloseDelimited);
        }
        if let Some(bytes) = self.cut_after {
            let then = if self.cut_by_reset { Then::Reset } else { Then::Close };
            answer = answer.cut(CutAt::Body(bytes), then);
        }
        if self.date_ahead_s > 0 {
            answer = answer.date(Date::Ahead(Duration::from_secs(self.date_ahead_s)));
        }
        answer
    }

    fn fault(&self, name: &str) -> Result<Behaviour, SpecError> {
        let interval = Duration::from_millis(self.interval_ms.unwrap_or(100));
        Ok(match name {
            "hang" => Behaviour::hang(),
            "close" => Behaviour::close(),
            "reset" => Behaviour::reset(),
            "garbage" => Behaviour::garbage(),
            "html_200" => Behaviour::html_200(),
            "empty_200" => Behaviour::empty_200(),
            "wrong_json" => Behaviour::wrong_json(),
            "half_json_close_delimited" => Behaviour::half_json_close_delimited(),
            "half_json_whole_framing" => Behaviour::half_json_whole_framing(),
            "truncated" => Behaviour::truncated(600, 300),
            "truncated_chunked" => Behaviour::truncated_chunked(300),
            "reset_after_head" => Behaviour::reset_after_head(),
            "reset_mid_body" => Behaviour::reset_mid_body(600, 300),
            "half_head" => Behaviour::half_head(self.status.unwrap_or(200)),
            "drip_forever" => Behaviour::drip_forever(interval),
            "slow_head" => Behaviour::slow_head(interval),
            _ => return Err(SpecError::UnknownFault(name.to_owned())),
        })
    }
}
