//! The request's body on its way out, watched.
//!
//! Two things must be known that the connection does not tell: whether the body was taken to its end (a connection
//! whose request was not sent wholly is never used again), and whether it was the *client* that broke off, which is no
//! failure of the dependency.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use backstop_engine::flow::ClientFault;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

type BoxError = Box<dyn Error + Send + Sync>;

/// A request's body: bytes that may be sent from another thread.
pub trait RequestBody: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> RequestBody for B {}

/// What is wrong with a request that is still arriving, as an error of its body.
///
/// Any other error of a request's body means that the client broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientBody(pub ClientFault);

impl ClientBody {
    fn fault(error: &BoxError) -> ClientFault {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&**error);
        while let Some(error) = cause {
            if let Some(Self(fault)) = error.downcast_ref() {
                return *fault;
            }
            cause = error.source();
        }
        ClientFault::Broken
    }
}

impl fmt::Display for ClientBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ClientFault::Slow => "the request did not arrive in time",
            ClientFault::TooLarge => "the request is too large",
            ClientFault::Broken => "the request broke off",
        })
    }
}

impl Error for ClientBody {}

pin_project! {
    /// A request's body.
    pub(super) struct Upload<B> {
        #[pin]
        body: B,
        watch: Watch,
    }
}

impl<B: Body> Upload<B> {
    pub(super) fn new(body: B) -> Self {
        let watch = Watch((!body.is_end_stream()).then(Arc::default));
        Self { body, watch }
    }

    pub(super) fn watch(&self) -> Watch {
        self.watch.clone()
    }
}

/// Tells how far a request's body has come. A request without a body is sent as soon as it is handed over.
#[derive(Clone, Debug)]
pub(super) struct Watch(Option<Arc<Mutex<Seen>>>);

#[derive(Debug, Default)]
struct Seen {
    end: Option<Result<(), ClientFault>>,
    told: Option<Waker>,
}

impl Watch {
    pub(super) fn has_body(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the whole body has been taken.
    pub(super) fn is_sent(&self) -> bool {
        self.seen().is_none_or(|seen| matches!(seen.end, Some(Ok(()))))
    }

    /// Ready as soon as there is nothing more to take.
    pub(super) fn poll_ended(&self, context: &Context<'_>) -> Poll<()> {
        match self.seen() {
            Some(mut seen) if seen.end.is_none() => {
                if !seen.told.as_ref().is_some_and(|told| told.will_wake(context.waker())) {
                    seen.told = Some(context.waker().clone());
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// What is wrong with the body, if it broke off.
    pub(super) fn fault(&self) -> Option<ClientFault> {
        self.seen()?.end?.err()
    }

    fn ended(&self, how: Result<(), ClientFault>) {
        let told = self.seen().and_then(|mut seen| {
            seen.end.get_or_insert(how);
            seen.told.take()
        });
        if let Some(told) = told {
            told.wake();
        }
    }

    fn seen(&self) -> Option<MutexGuard<'_, Seen>> {
        self.0.as_ref().map(|seen| seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<B: RequestBody> Body for Upload<B> {
    type Data = Bytes;
    type Error = ClientBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientBody>>> {
        let mut this = self.project();
        let frame = match ready!(this.body.as_mut().poll_frame(context)) {
            Some(Ok(frame)) => {
                if this.body.is_end_stream() || frame.is_trailers() {
                    this.watch.ended(Ok(()));
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                let fault = ClientBody::fault(&error.into());
                this.watch.ended(Err(fault));
                Some(Err(ClientBody(fault)))
            }
            None => {
                this.watch.ended(Ok(()));
                None
            }
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
