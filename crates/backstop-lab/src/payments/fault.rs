//! What goes wrong with a payment, or with the question what became of it.

use std::time::Duration;

use crate::origin::{Gate, Then};

/// A moment that something waits for.
#[derive(Clone, Debug)]
pub enum When {
    /// At once.
    Now,
    /// After this time.
    After(Duration),
    /// When this gate is open.
    Opened(Gate),
}

impl When {
    pub(super) async fn comes(&self) {
        match self {
            Self::Now => {}
            Self::After(time) => tokio::time::sleep(*time).await,
            Self::Opened(gate) => gate.pass().await,
        }
    }
}

/// When the payment happens.
#[derive(Clone, Debug)]
pub(super) enum Happens {
    /// At this moment, and the reply follows it. Nobody's leaving stops it.
    First(When),
    /// At this moment, and the reply does not wait for it.
    Beside(When),
    /// Not at all.
    Never,
}

/// What the client is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Usual,
    Lost(Then),
    Status(u16),
    HalfHead,
    Truncated(Then),
    HtmlPage,
    Processing,
    Drip(Duration),
}

/// What goes wrong with a payment: whether and when it happens, and what the client hears.
///
/// A payment that is refused for its amount does not happen, whatever is set here.
#[derive(Clone, Debug)]
pub struct Fault {
    pub(super) happens: Happens,
    pub(super) reply: Reply,
    pub(super) reply_when: When,
    pub(super) is_processing: bool,
}

impl Fault {
    fn new(happens: Happens, reply: Reply) -> Self {
        Self { happens, reply, reply_when: When::Now, is_processing: false }
    }

    fn done(reply: Reply) -> Self {
        Self::new(Happens::First(When::Now), reply)
    }

    /// It happens, and the connection ends without a byte of an answer.
    #[must_use]
    pub fn answer_lost(then: Then) -> Self {
        Self::done(Reply::Lost(then))
    }

    /// The request is read, nothing happens, and the connection ends without a byte.
    #[must_use]
    pub fn lost_before_effect(then: Then) -> Self {
        Self::new(Happens::Never, Reply::Lost(then))
    }

    /// It happens later, and then it is answered, if somebody still listens.
    #[must_use]
    pub fn late(when: When) -> Self {
        Self::new(Happens::First(when), Reply::Usual)
    }

    /// The connection ends at once without a byte, and it happens later.
    #[must_use]
    pub fn lost_and_late(then: Then, when: When) -> Self {
        Self::new(Happens::Beside(when), Reply::Lost(then))
    }

    /// It happens, and the answer has this status and says nothing of it.
    #[must_use]
    pub fn status_after_effect(status: u16) -> Self {
        Self::done(Reply::Status(status))
    }

    /// It does not happen, and the answer has this status.
    #[must_use]
    pub fn status_without_effect(status: u16) -> Self {
        Self::new(Happens::Never, Reply::Status(status))
    }

    /// It happens, and the answer breaks off in the middle of its head, by a close.
    #[must_use]
    pub fn half_head() -> Self {
        Self::done(Reply::HalfHead)
    }

    /// It happens, and the answer breaks off in the middle of its body.
    #[must_use]
    pub fn truncated(then: Then) -> Self {
        Self::done(Reply::Truncated(then))
    }

    /// It happens, and the answer is 200 with an HTML page.
    #[must_use]
    pub fn html_page() -> Self {
        Self::done(Reply::HtmlPage)
    }

    /// It is answered 202 and shown as under way, and happens later.
    #[must_use]
    pub fn processing(when: When) -> Self {
        Self::new(Happens::Beside(when), Reply::Processing).seen_as_processing()
    }

    /// It happens, and the body of the answer comes one byte per `interval`.
    #[must_use]
    pub fn drip(interval: Duration) -> Self {
        Self::done(Reply::Drip(interval))
    }

    /// It does not happen, and everything else stays.
    #[must_use]
    pub fn without_effect(self) -> Self {
        Self { happens: Happens::Never, ..self }
    }

    /// The answer, or the end of the connection, waits for this moment, whatever it waits for otherwise.
    #[must_use]
    pub fn answered(self, when: When) -> Self {
        Self { reply_when: when, ..self }
    }

    /// Until it happens, a status query says `processing`. Otherwise it says that there is no such payment.
    #[must_use]
    pub fn seen_as_processing(self) -> Self {
        Self { is_processing: true, ..self }
    }
}

/// What goes wrong with a status query.
#[derive(Clone, Debug)]
pub enum StatusFault {
    /// This status, with a small JSON body that names it: 401, 403, 500, 503.
    Status(u16),
    /// 200 with an HTML page.
    HtmlPage,
    /// No byte of an answer; [`Then::Hang`] for a query that hangs.
    Lost(Then),
    /// The right answer, broken off in the middle of its body.
    Truncated(Then),
    /// 200 `succeeded` under the right key with one more than the amount that was paid.
    OtherAmount,
    /// 200 `succeeded` of another payment than the one that was asked for.
    OtherOperation,
    /// 404 with a text that is no JSON, as another service or a wrong route answers.
    BareNotFound,
    /// The right answer of a replica that has not seen the effect yet.
    Behind,
    /// The right answer, at this moment.
    Held(When),
    /// The right answer, its body one byte per this interval.
    Drip(Duration),
}
