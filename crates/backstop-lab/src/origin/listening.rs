//! The listening socket, and the two ways of not being reachable.
//!
//! The origin keeps its port for its whole life with a second socket that is bound to it and never listens. Linux
//! looks up new connections among listening sockets only, so with the listening one closed a connect is refused at
//! once, and nobody else can take the port meanwhile. `SO_REUSEADDR` on both allows the pair.
//!
//! **A connect that hangs.** Linux drops a SYN without an answer while the accept queue of the listening socket is
//! full (`net/ipv4/tcp_input.c`, `tcp_conn_request`; SYN cookies do not change this), and the client sends it again
//! after one second, then three, seven, and so on. With a backlog of 1 the queue is full with two connections. So:
//! listen with backlog 1, never accept, and connect until a connect is not answered. On loopback an answered
//! handshake is over before `connect` returns to its caller, so a connect that is still open after
//! [`ANSWERED_WITHIN`] was not answered. The connections that fill the queue are kept for as long as it shall hang.

use std::{io, net::SocketAddr, time::Duration};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// Backlog of a listener that serves.
const BACKLOG: i32 = 1024;
/// Backlog of a listener whose queue is to be full.
const BACKLOG_TO_FILL: i32 = 1;
/// Most connections tried to fill it.
const FILLERS_MAX: usize = 16;
/// A loopback connect that takes longer was not answered.
const ANSWERED_WITHIN: Duration = Duration::from_millis(300);

/// A port kept for the whole life of the origin.
#[derive(Debug)]
pub(crate) struct Port {
    _kept: Socket,
    pub(crate) addr: SocketAddr,
}

impl Port {
    pub(crate) fn keep(addr: SocketAddr) -> io::Result<Self> {
        let kept = bound(addr)?;
        let addr = kept.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { _kept: kept, addr })
    }

    /// Listens at once, outside of any runtime.
    pub(crate) fn std_listener(&self) -> io::Result<std::net::TcpListener> {
        Ok(self.listener(BACKLOG)?.into())
    }

    fn listener(&self, backlog: i32) -> io::Result<Socket> {
        let socket = bound(self.addr)?;
        socket.listen(backlog)?;
        Ok(socket)
    }
}

fn bound(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// How the origin can be reached.
#[derive(Debug)]
pub(crate) enum Listening {
    /// It accepts.
    Serving(TcpListener),
    /// A connect is refused.
    Refusing,
    /// A connect hangs. The listener is never accepted from; the streams fill its queue.
    Full { _listener: Socket, _fillers: Vec<TcpStream> },
}

impl Listening {
    /// Accepts. Must be called inside a runtime.
    pub(crate) fn serving(port: &Port) -> io::Result<Self> {
        let socket = port.listener(BACKLOG)?;
        Ok(Self::Serving(TcpListener::from_std(socket.into())?))
    }

    /// Listens with a full queue.
    pub(crate) async fn full(port: &Port) -> io::Result<Self> {
        let listener = port.listener(BACKLOG_TO_FILL)?;
        let mut fillers = Vec::new();
        while fillers.len() < FILLERS_MAX {
            match timeout(ANSWERED_WITHIN, TcpStream::connect(port.addr)).await {
                Ok(filler) => fillers.push(filler?),
                Err(_) => return Ok(Self::Full { _listener: listener, _fillers: fillers }),
            }
        }
        Err(io::Error::other("the accept queue did not fill up"))
    }

    /// The next connection; never, unless it accepts.
    pub(crate) async fn accept(&self) -> io::Result<TcpStream> {
        match self {
            Self::Serving(listener) => listener.accept().await.map(|(stream, _)| stream),
            Self::Refusing | Self::Full { .. } => std::future::pending().await,
        }
    }
}
