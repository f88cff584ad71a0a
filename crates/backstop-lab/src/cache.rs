//! A shared cache: as much of a Redis server as a cache's clients send, so that nothing has to be installed to show one.
//!
//! It speaks RESP2 and knows `PING`, `GET`, `GETRANGE`, `SET` (with `EX` or `PX`), `DEL`, `SELECT` and `CLIENT`; whatever else it is
//! sent, `HELLO` included, is an error that says so. What it holds is in memory: [`CacheServer::stop`] loses it, as a server that
//! is stopped does.
//!
//! It holds at most [`KEYS_MAX`] values; one more is refused as Redis refuses it (`OOM`).
//!
//! ```
//! use backstop_lab::cache::{CacheServer, ask};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let cache = CacheServer::start().await?;
//! ask(cache.addr(), &[b"SET", b"k", b"v", b"PX", b"60000"]).await?;
//! assert_eq!(ask(cache.addr(), &[b"GET", b"k"]).await?.as_deref(), Some(&b"v"[..]));
//! cache.stop();
//! assert!(ask(cache.addr(), &[b"GET", b"k"]).await.is_err());
//! # Ok(())
//! # }
//! ```

mod client;
mod commands;
mod resp;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use commands::Values;

pub use client::ask;
pub use commands::KEYS_MAX;

/// Most connections at once; one more is closed as soon as it is accepted.
const CONNECTIONS_MAX: usize = 1024;
const READ_BYTES: usize = 16 * 1024;

/// A running cache. It ends when it is dropped. It runs on the runtime that started it.
#[derive(Debug)]
pub struct CacheServer {
    addr: SocketAddr,
    values: Arc<Mutex<Values>>,
    life: Mutex<Option<JoinHandle<()>>>,
}

impl CacheServer {
    /// Starts an empty cache on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = Self { addr: listener.local_addr()?, values: Arc::default(), life: Mutex::new(None) };
        server.live(listener);
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Closes its port and every connection, and forgets what it held.
    pub fn stop(&self) {
        if let Some(life) = lock(&self.life).take() {
            life.abort();
        }
        lock(&self.values).clear();
    }

    /// Listens again on the same port, empty. One that runs goes on.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on.
    pub async fn start_again(&self) -> io::Result<()> {
        if lock(&self.life).is_none() {
            let listener = TcpListener::bind(self.addr).await?;
            self.live(listener);
        }
        Ok(())
    }

    fn live(&self, listener: TcpListener) {
        *lock(&self.life) = Some(tokio::spawn(serve(listener, Arc::clone(&self.values))));
    }
}

impl Drop for CacheServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Accepts until it is aborted. Its connections end with it: the set of their tasks is its own.
async fn serve(listener: TcpListener, values: Arc<Mutex<Values>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted && connections.len() < CONNECTIONS_MAX {
                    connections.spawn(converse(stream, Arc::clone(&values)));
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// One connection: commands are answered in order until the client leaves or sends what is no command.
async fn converse(mut stream: TcpStream, values: Arc<Mutex<Values>>) {
    let mut received = Vec::new();
    let mut piece = vec![0; READ_BYTES];
    loop {
        let mut replies = Vec::new();
        loop {
            match resp::command(&received) {
                Ok(Some((command, used))) => {
                    received.drain(..used);
                    replies.extend(lock(&values).reply(&command));
                }
                Ok(None) => break,
                Err(resp::Malformed) => {
                    let _gone = stream.write_all(b"-ERR Protocol error\r\n").await;
                    return;
                }
            }
        }
        if !replies.is_empty() && stream.write_all(&replies).await.is_err() {
            return;
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(read) => received.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stopped_cache_refuses_connections_and_comes_back_empty() {
        let cache = CacheServer::start().await.unwrap();
        assert_eq!(ask(cache.addr(), &[b"SET", b"k", b"v"]).await.unwrap().as_deref(), Some(&b"OK"[..]));
        let mut open = TcpStream::connect(cache.addr()).await.unwrap();
        open.write_all(b"*1\r\n$4\r\nPING\r\n").await.unwrap();
        let mut pong = [0; 7];
        open.read_exact(&mut pong).await.unwrap();
        assert_eq!(&pong, b"+PONG\r\n");
        cache.stop();
        let left = open.read(&mut pong).await;
        assert!(matches!(left, Ok(0) | Err(_)), "its connections end with it");
        assert!(ask(cache.addr(), &[b"GET", b"k"]).await.is_err());
        cache.start_again().await.unwrap();
        cache.start_again().await.unwrap();
        assert_eq!(ask(cache.addr(), &[b"GET", b"k"]).await.unwrap(), None);
    }

    #[tokio::test]
    async fn commands_may_come_in_pieces_and_several_at_once() {
        let cache = CacheServer::start().await.unwrap();
        let mut stream = TcpStream::connect(cache.addr()).await.unwrap();
        let sent = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvw\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        for byte in sent.chunks(7) {
            stream.write_all(byte).await.unwrap();
        }
        let mut replies = [0; 13];
        stream.read_exact(&mut replies).await.unwrap();
        assert_eq!(&replies, b"+OK\r\n$2\r\nvw\r\n");
    }
}
