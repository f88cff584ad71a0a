//! What is known of one request of a load.

use std::time::Duration;

use serde::Serialize;

use crate::client::{ClientError, Completeness, Ending};

/// Why there was no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The connection was refused or failed.
    Connect,
    /// The connection was not made in time.
    ConnectTimeout,
    /// The request could not be sent.
    Send,
    /// FIN before a whole head.
    ClosedBeforeHead,
    /// RST before a whole head.
    ResetBeforeHead,
    /// No whole answer in time.
    Timeout,
    /// The body was cut by FIN.
    CutByFin,
    /// The body was cut by RST.
    CutByReset,
    /// The head or the body's framing was malformed.
    Malformed,
}

impl Failure {
    /// Its name in summaries.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Send => "send",
            Self::ClosedBeforeHead => "closed_before_head",
            Self::ResetBeforeHead => "reset_before_head",
            Self::Timeout => "timeout",
            Self::CutByFin => "cut_by_fin",
            Self::CutByReset => "cut_by_reset",
            Self::Malformed => "malformed",
        }
    }

    pub(crate) fn of_error(error: &ClientError) -> Self {
        match error {
            ClientError::Connect(_) => Self::Connect,
            ClientError::ConnectTimeout(_) => Self::ConnectTimeout,
            ClientError::Send(_) => Self::Send,
            ClientError::SendTimeout(_) => Self::Timeout,
            ClientError::NoHead { ending: Ending::Fin, .. } => Self::ClosedBeforeHead,
            ClientError::NoHead { ending: Ending::Reset, .. } => Self::ResetBeforeHead,
            ClientError::NoHead { ending: Ending::TimedOut, .. } => Self::Timeout,
            ClientError::MalformedHead { .. } => Self::Malformed,
        }
    }

    pub(crate) fn of_body(completeness: Completeness) -> Option<Self> {
        match completeness {
            Completeness::Complete => None,
            Completeness::CutByFin => Some(Self::CutByFin),
            Completeness::CutByReset => Some(Self::CutByReset),
            Completeness::TimedOut => Some(Self::Timeout),
            Completeness::Malformed | Completeness::TooLong => Some(Self::Malformed),
        }
    }
}

/// One request of a load, once its answer is there or has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Which request, from 0, in the order of intended times.
    pub sequence: u64,
    /// Which kind, by its place in the plan.
    pub kind: usize,
    /// When it should have been sent, from the start of the run.
    pub intended: Duration,
    /// From the intended time until it was handed to the kernel; `None` if there never was a connection to hand it to.
    pub send_lag: Option<Duration>,
    /// From the intended time until the answer was whole, or had failed.
    pub latency: Duration,
    /// The status, where there was a head.
    pub status: Option<u16>,
    /// Why there was no whole answer.
    pub failure: Option<Failure>,
    /// `outcome` of the `Backstop` field; `None` without one; `unreadable` if it is no such field.
    pub outcome: Option<String>,
    /// `source` of the `Backstop` field.
    pub source: Option<String>,
    /// `reason` of the `Backstop` field.
    pub reason: Option<String>,
    /// `age` of the `Backstop` field, in whole seconds.
    pub age_s: Option<i64>,
    /// Name in lower case and value of the header lines `backstop` and `age`, where the answer has them.
    pub headers: Vec<(String, String)>,
    /// Length of the body received.
    pub body_bytes: u64,
    /// What the kind's check said of a whole answer; `None` without a check or a whole answer.
    pub right: Option<bool>,
}
