//! The answer of an observed route on its way to the client.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use backstop::upstream::BrokenOff;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::exchange::{Exchange, Leaving};

/// The dependency's content, or a few words of our own.
pub(crate) struct Passed {
    content: Content,
    leaving: Leaving,
}

enum Content {
    Answer { exchange: Rc<Exchange>, left: SizeHint, ends_at_once: bool },
    Own(Option<Bytes>),
}

impl Passed {
    pub(super) fn of(exchange: Rc<Exchange>, leaving: Leaving, left: SizeHint, ends_at_once: bool) -> Self {
        if ends_at_once {
            leaving.is_over();
        }
        Self { content: Content::Answer { exchange, left, ends_at_once }, leaving }
    }

    pub(super) fn own(content: Bytes, leaving: Leaving) -> Self {
        if content.is_empty() {
            leaving.is_over();
        }
        Self { content: Content::Own(Some(content).filter(|content| !content.is_empty())), leaving }
    }
}

impl Body for Passed {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let frame = match &mut self.content {
            Content::Own(content) => content.take().map(|content| Ok(Frame::data(content))),
            Content::Answer { exchange, left, .. } => {
                let frame = ready!(exchange.poll_client(context));
                if let Some(Ok(frame)) = &frame {
                    use_up(left, frame.data_ref().map_or(0, |bytes| bytes.len() as u64));
                }
                frame
            }
        };
        if !matches!(frame, Some(Ok(_))) || self.is_end_stream() {
            self.leaving.is_over();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Answer { ends_at_once: true, .. } => true,
            Content::Answer { exchange, .. } => exchange.client_has_all(),
            Content::Own(content) => content.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Answer { left, .. } => *left,
            Content::Own(content) => SizeHint::with_exact(content.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}

/// What is still to come, once so much of it is gone.
fn use_up(left: &mut SizeHint, bytes: u64) {
    let mut rest = SizeHint::new();
    if let Some(upper) = left.upper() {
        rest.set_upper(upper.saturating_sub(bytes));
    }
    rest.set_lower(left.lower().saturating_sub(bytes));
    *left = rest;
}
