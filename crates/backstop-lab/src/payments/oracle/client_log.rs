//! What clients sent and what they heard, in one order.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use crate::client::{ClientError, Response};

/// What an attempt asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// That the operation be executed, with this amount.
    Execute {
        /// How much.
        amount: u64,
    },
    /// What became of it, at the address that an earlier answer named.
    Look,
}

/// A whole answer, as far as it is about an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// `Content-Type`, which is kept with an answer.
    pub content_type: Option<String>,
    /// `Location`, which is kept with an answer.
    pub location: Option<String>,
    /// The member `type` of a JSON body: which problem it is.
    pub problem: Option<String>,
    /// The member `state` of a JSON body: what the operation is in.
    pub state: Option<String>,
    /// The member `retry` of a JSON body: with which key it may be tried again.
    pub retry: Option<String>,
}

impl Answer {
    /// An answer with this status and body, and no field.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let json: Value = serde_json::from_slice(&body).unwrap_or_default();
        let member = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let (problem, state, retry) = (member("type"), member("state"), member("retry"));
        Self { status, body, content_type: None, location: None, problem, state, retry }
    }

    /// With the fields that are kept.
    #[must_use]
    pub fn with(self, content_type: Option<&str>, location: Option<&str>) -> Self {
        let [content_type, location] = [content_type, location].map(|value| value.map(str::to_owned));
        Self { content_type, location, ..self }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A whole answer.
    Answer(Answer),
    /// A whole head and a body that broke off.
    Cut {
        /// The status.
        status: u16,
    },
    /// Nothing that could be understood: no connection, or no whole head.
    Nothing,
}

impl From<&Result<Response, ClientError>> for Heard {
    fn from(heard: &Result<Response, ClientError>) -> Self {
        match heard {
            Ok(response) if response.is_complete() => {
                let answer = Answer::new(response.status(), response.body.clone());
                Self::Answer(answer.with(response.header("content-type"), response.header("location")))
            }
            Ok(response) => Self::Cut { status: response.status() },
            Err(_) => Self::Nothing,
        }
    }
}

/// One attempt. `sent` and `heard_at` are places in the one order of everything that clients did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The operation's key.
    pub key: String,
    /// What was asked for.
    pub asked: Asked,
    /// When, before its first byte left.
    pub sent: u64,
    /// When what is in `heard` was known; `None` while nothing is.
    pub heard_at: Option<u64>,
    /// What came back.
    pub heard: Heard,
}

/// An attempt that has begun.
#[derive(Debug)]
#[must_use = "what it hears has to be written down"]
pub struct AttemptId(usize);

/// The log of all clients of one test, which may run at the same time.
#[derive(Debug, Default)]
pub struct ClientLog(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    order: u64,
    attempts: Vec<Attempt>,
}

impl ClientLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A client is about to ask for something.
    pub fn sends(&self, key: &str, asked: Asked) -> AttemptId {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.order += 1;
        let sent = pages.order;
        pages.attempts.push(Attempt {
            key: key.to_owned(),
            asked,
            sent,
            heard_at: None,
            heard: Heard::Nothing,
        });
        AttemptId(pages.attempts.len() - 1)
    }

    /// This is what it heard.
    #[expect(clippy::needless_pass_by_value, reason = "an attempt hears once")]
    pub fn hears(&self, attempt: AttemptId, heard: impl Into<Heard>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.order += 1;
        let order = pages.order;
        if let Some(attempt) = pages.attempts.get_mut(attempt.0) {
            (attempt.heard, attempt.heard_at) = (heard.into(), Some(order));
        }
    }

    /// Every attempt, in the order of sending.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).attempts.clone()
    }
}
