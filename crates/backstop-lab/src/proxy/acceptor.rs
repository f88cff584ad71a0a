//! Accepts connections at one address, and is away while they are refused.
//!
//! The port is kept for the whole life of the proxy ([`Port`]), so nobody else listens there while it is away.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpStream, sync::watch, task::JoinSet, time};

use crate::origin::listening::{Listening, Port};

use super::{Protocol, conversation, raw, site::Site};

/// How often a connection that found no room looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A port of this machine in front of one address.
#[derive(Debug)]
pub(crate) struct Acceptor {
    site: Site,
    port: Port,
    first: std::net::TcpListener,
}

impl Acceptor {
    pub(crate) fn bind(site: Site) -> io::Result<Self> {
        let port = Port::keep(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let first = port.std_listener()?;
        Ok(Self { site, port, first })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.port.addr
    }

    /// Serves until it is dropped.
    pub(crate) async fn serve(self) -> io::Result<()> {
        let Self { site, port, first } = self;
        let mut listening = Listening::Serving(tokio::net::TcpListener::from_std(first)?);
        let severed = watch::Sender::new(0_u64);
        let mut connections = JoinSet::new();
        loop {
            let refuses = site.now().is_some_and(|now| site.shared.schedule.refuses(site.upstream, now));
            match (&listening, refuses) {
                (Listening::Serving(_), true) => {
                    listening = Listening::Refusing;
                    severed.send_modify(|times| *times += 1);
                }
                (Listening::Refusing | Listening::Full { .. }, false) => {
                    listening = Listening::serving(&port)?
                }
                _ => {}
            }
            let change = change(&site);
            tokio::select! {
                accepted = listening.accept() => {
                    // A caller that left before it was accepted is no concern.
                    let Ok(stream) = accepted else { continue };
                    connections.spawn(connection(stream, site.clone(), port.addr, severed.subscribe()));
                }
                () = change => {}
                Some(_ended) = connections.join_next() => {}
            }
        }
    }
}

/// Ends when a window of this upstream opens or closes, or when time begins to count.
async fn change(site: &Site) {
    let begun = site.shared.begun.notified();
    let Some(now) = site.now() else { return begun.await };
    match site.shared.schedule.next_change(site.upstream, now) {
        Some(at) => time::sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}

async fn connection(mut stream: TcpStream, site: Site, own: SocketAddr, mut severed: watch::Receiver<u64>) {
    severed.mark_unchanged();
    let _only_slower = stream.set_nodelay(true);
    let served = async {
        let _place = loop {
            match site.take_place() {
                Some(place) => break place,
                None => time::sleep(LOOK_AGAIN).await,
            }
        };
        match site.protocol {
            Protocol::Http => conversation::serve(&mut stream, &site, own).await,
            Protocol::Raw => raw::serve(&mut stream, &site).await,
        }
    };
    let ends = tokio::select! {
        ends = served => ends,
        _ = severed.changed() => End::Reset,
    };
    if ends == End::Reset {
        let _gone_already = stream.set_zero_linger();
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In order.
    Close,
    /// By RST.
    Reset,
}
