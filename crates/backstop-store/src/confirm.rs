//! Futures that the disk's threads complete.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::copies::LoadError;
use crate::copy::StoredCopy;

/// Why a withdrawal will not be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    /// The store was closed before the disk had confirmed it.
    #[error("the store was closed before the disk confirmed the withdrawal")]
    Closed,
}

/// Completes once a withdrawal is durable. In memory it holds already.
///
/// Waits as long as the disk takes; the caller bounds the wait itself (50 ms) and counts the rest. Dropping it
/// changes nothing: the withdrawal stays queued until the disk has it.
#[derive(Debug)]
#[must_use = "a withdrawal is durable only once this has completed"]
pub struct Confirmation(Option<oneshot::Receiver<Result<(), WithdrawError>>>);

impl Confirmation {
    /// Complete already: no disk holds anything.
    pub(crate) const fn immediate() -> Self {
        Self(None)
    }

    pub(crate) fn channel() -> (oneshot::Sender<Result<(), WithdrawError>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(Some(receiver)))
    }
}

impl Future for Confirmation {
    type Output = Result<(), WithdrawError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            None => Poll::Ready(Ok(())),
            Some(receiver) => {
                Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or(Err(WithdrawError::Closed)))
            }
        }
    }
}

/// Completes once a copy was read back from disk, or could not be.
#[derive(Debug)]
pub struct PendingLoad(oneshot::Receiver<Result<Arc<StoredCopy>, LoadError>>);

impl PendingLoad {
    pub(crate) fn channel() -> (oneshot::Sender<Result<Arc<StoredCopy>, LoadError>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(receiver))
    }
}

impl Future for PendingLoad {
    type Output = Result<Arc<StoredCopy>, LoadError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(LoadError::Unreadable)))
    }
}
