//! What a ledger completes later.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// Why a ledger did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Too much waits for the disk already. Nothing was written.
    #[error("too many operations wait for the ledger's disk")]
    QueueFull,
    /// The disk has no room for new operations. Nothing was written.
    #[error("the ledger's disk is full")]
    NoRoom,
    /// The ledger was closed, or ended because its disk failed. What was asked may or may not have been written.
    #[error("the ledger was closed")]
    Closed,
}

/// Completes once what was asked is durable, or will not be.
///
/// Dropping it takes nothing back.
#[derive(Debug)]
#[must_use = "it is done, and durable, only once this has completed"]
pub struct Completion<T>(Inner<T>);

#[derive(Debug)]
enum Inner<T> {
    Waiting(oneshot::Receiver<Result<T, LedgerError>>),
    Ready(Option<LedgerError>),
}

/// The other end of a [`Completion`].
#[derive(Debug)]
pub(crate) struct Completes<T>(oneshot::Sender<Result<T, LedgerError>>);

impl<T> Completes<T> {
    /// Whoever stopped waiting needs no answer.
    pub(crate) fn with(self, result: Result<T, LedgerError>) {
        let _ = self.0.send(result);
    }
}

impl<T> Completion<T> {
    /// A completion and its other end, for ledgers.
    pub(crate) fn channel() -> (Completes<T>, Self) {
        let (sender, receiver) = oneshot::channel();
        (Completes(sender), Self(Inner::Waiting(receiver)))
    }

    /// What was not done, for ledgers.
    pub const fn refused(error: LedgerError) -> Self {
        Self(Inner::Ready(Some(error)))
    }

    /// Waits on this thread, which must not be one that runs async tasks.
    ///
    /// # Errors
    /// If it was not done.
    pub fn wait(self) -> Result<T, LedgerError> {
        match self.0 {
            Inner::Waiting(receiver) => receiver.blocking_recv().unwrap_or(Err(LedgerError::Closed)),
            Inner::Ready(error) => Err(error.unwrap_or(LedgerError::Closed)),
        }
    }
}

impl<T> Future for Completion<T> {
    type Output = Result<T, LedgerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Waiting(receiver) => {
                Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or(Err(LedgerError::Closed)))
            }
            Inner::Ready(error) => Poll::Ready(Err(error.take().unwrap_or(LedgerError::Closed))),
        }
    }
}

impl<T> Unpin for Completion<T> {}
