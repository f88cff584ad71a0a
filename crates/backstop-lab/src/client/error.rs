//! What can go wrong before there is an answer.

use std::{io, time::Duration};

use bytes::Bytes;

/// How the bytes from the peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In order (FIN).
    Fin,
    /// By a reset (RST), or another failure of the connection.
    Reset,
    /// Not at all: the bound was over first.
    TimedOut,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection was refused or failed.
    #[error("could not connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection was not made within the bound.
    #[error("no connection within {0:?}")]
    ConnectTimeout(Duration),
    /// The request could not be sent.
    #[error("could not send: {0}")]
    Send(#[source] io::Error),
    /// The request could not be sent within the bound: the peer does not read.
    #[error("not sent within {0:?}")]
    SendTimeout(Duration),
    /// The bytes ended before a whole head, by `ending`. `received` is empty if there was no byte at all.
    #[error("no answer: {ending:?} after {} bytes of a head", received.len())]
    NoHead {
        /// How they ended.
        ending: Ending,
        /// What there was of a head.
        received: Bytes,
    },
    /// The head is not exact HTTP/1.1.
    #[error("malformed head: {reason}")]
    MalformedHead {
        /// What is wrong.
        reason: &'static str,
        /// The bytes.
        received: Bytes,
    },
}

impl ClientError {
    /// How the bytes ended, where that is what went wrong.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::NoHead { ending, .. } => Some(*ending),
            _ => None,
        }
    }

    /// Whether the connection was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}
