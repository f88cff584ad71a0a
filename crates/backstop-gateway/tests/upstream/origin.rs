//! An origin that does exactly what a test says, byte by byte, on a thread of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use crate::support::soon;

/// What an origin has seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) accepted: usize,
    pub(crate) open: usize,
    pub(crate) most_open: usize,
    pub(crate) heads: Vec<String>,
}

pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    seen: watch::Receiver<Seen>,
    _stop: oneshot::Sender<()>,
}

impl Origin {
    /// Serves every connection with `serve`, all at once.
    pub(crate) fn start<F, S>(serve: F) -> Self
    where
        F: Fn(Peer) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("non-blocking");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, seen) = watch::channel(Seen::default());
        let told = Arc::new(told);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let accepting = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        told.send_modify(|seen| {
                            seen.accepted += 1;
                            seen.open += 1;
                            seen.most_open = seen.most_open.max(seen.open);
                        });
                        let number = told.borrow().accepted;
                        let peer = Peer { stream, number, told: Arc::clone(&told), read: Vec::new() };
                        tokio::spawn(serve(peer));
                    }
                };
                tokio::select! { () = accepting => {}, _ = stopped => {} }
            });
        });
        Self { address, seen, _stop: stop }
    }

    /// Answers every request on every connection alike.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::start(move |mut peer| async move {
            while peer.head().await.is_some() {
                peer.say(answer).await;
            }
        })
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until it has seen that.
    pub(crate) async fn until(&self, condition: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        soon(seen.wait_for(condition)).await.expect("the origin runs");
    }
}

/// One connection at the origin.
pub(crate) struct Peer {
    stream: TcpStream,
    /// From 1.
    pub(crate) number: usize,
    told: Arc<watch::Sender<Seen>>,
    read: Vec<u8>,
}

impl Peer {
    /// The next request's head, or `None` if the other side closed.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head: Vec<u8> = self.read.drain(..end + 4).collect();
                let head = String::from_utf8_lossy(&head).into_owned();
                self.told.send_modify(|seen| seen.heads.push(head.clone()));
                return Some(head);
            }
            self.more().await?;
        }
    }

    /// The next `length` bytes of a body.
    pub(crate) async fn body(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.read.len() < length {
            self.more().await?;
        }
        Some(self.read.drain(..length).collect())
    }

    async fn more(&mut self) -> Option<()> {
        let mut bytes = [0; 16 * 1024];
        let count = self.stream.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        self.read.extend_from_slice(&bytes[..count]);
        Some(())
    }

    pub(crate) async fn say(&mut self, bytes: &str) {
        let _other_side_closed = self.stream.write_all(bytes.as_bytes()).await;
    }

    /// Reads whatever comes until the other side closes.
    pub(crate) async fn closed(&mut self) {
        while self.more().await.is_some() {
            self.read.clear();
        }
    }

    /// Sends RST.
    pub(crate) fn reset(self) {
        let _gone = SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO));
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.told.send_modify(|seen| seen.open -= 1);
    }
}
