//! Where connections lead: over the system's network, or along a script.
//!
//! All that is known of a dependency is learnt from connections. Who puts a script in the network's place has everything above
//! run as it is: which failure is which, what is tried anew, what is counted and when it is too late.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use backstop_engine::failure::FailureKind;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

use super::checkout::connect;

/// What connections are opened on.
#[derive(Clone, Debug, Default)]
pub enum Network {
    /// The system's.
    #[default]
    System,
    /// None: what happens is told.
    Script(Arc<dyn Script>),
}

/// What happens to the connections of one dependency.
pub trait Script: fmt::Debug + Send + Sync {
    /// Where a name points; `None` if nobody knows.
    fn resolve(&self, host: &str, port: u16) -> Option<Arc<[SocketAddr]>>;

    /// A connection, or what hinders it, as soon as it does.
    fn connect(&self, address: SocketAddr) -> Connecting;
}

/// A connection to come.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Stream, FailureKind>>>>;

impl Network {
    pub(super) async fn connect(&self, address: SocketAddr) -> Result<Stream, FailureKind> {
        match self {
            Self::System => connect(address).await.map(Stream::Tcp),
            Self::Script(script) => script.connect(address).await,
        }
    }
}

/// A connection's two directions.
#[derive(Debug)]
pub enum Stream {
    /// Over the system's network.
    Tcp(TcpStream),
    /// Within this process.
    Told(DuplexStream),
    /// Nothing can be written to it, and its other side has closed.
    Broken,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Told(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Broken => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Told(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Broken => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Told(stream) => Pin::new(stream).poll_flush(context),
            Self::Broken => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Told(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Broken => Poll::Ready(Ok(())),
        }
    }
}
