//! A server that says what it is told to say.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::support::soon;

pub(crate) struct Fake {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Fake {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        Self { listener, address }
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Peer {
        let (stream, _) = soon(self.listener.accept()).await.expect("a connection");
        Peer { stream, read: Vec::new() }
    }

    /// The next connection, greeted.
    pub(crate) async fn greet(&self) -> Peer {
        let mut peer = self.accept().await;
        peer.command("PING").await;
        peer.say(b"+PONG\r\n").await;
        peer
    }
}

/// The other side of a connection.
pub(crate) struct Peer {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Peer {
    /// Waits until a command came that holds this word.
    pub(crate) async fn command(&mut self, word: &str) {
        let found = async {
            loop {
                let at = self.read.windows(word.len()).position(|part| part == word.as_bytes());
                if let Some(at) = at {
                    self.read.drain(..at + word.len());
                    return;
                }
                assert_ne!(self.stream.read_buf(&mut self.read).await.expect("bytes"), 0, "no {word} came");
            }
        };
        soon(found).await;
    }

    pub(crate) async fn say(&mut self, bytes: &[u8]) {
        self.try_say(bytes).await.expect("it is still listened to");
    }

    pub(crate) async fn try_say(&mut self, bytes: &[u8]) -> io::Result<()> {
        soon(self.stream.write_all(bytes)).await
    }

    /// Waits until the connection is closed.
    pub(crate) async fn closed(mut self) {
        let closed = async {
            loop {
                match self.stream.read_buf(&mut self.read).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
        };
        soon(closed).await;
    }
}
