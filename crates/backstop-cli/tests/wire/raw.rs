//! Bytes as they are, on both sides.

use std::net::SocketAddr;
use std::time::Duration;

use backstop_lab::client::{Connection, Ending, Response, Tail};
use backstop_lab::origin::Origin;

use crate::support::{BOUND, Gateway, Policy};

/// The gateway in front of an origin that keeps every byte it gets.
pub struct Wires {
    pub origin: Origin,
    pub gateway: Gateway,
}

/// What one connection brought until the gateway ended it.
#[derive(Debug)]
pub struct Said {
    pub answers: Vec<Response>,
    pub tail: Tail,
}

/// One dependency and one route that passes everything on, with an alternative for nothing.
pub fn everything(origin: SocketAddr) -> Policy {
    Policy::empty().dependency("catalog", origin, "").route("all.direct", &direct("*", ""))
}

/// The lines of a direct route: 2 s, 64 in flight, and what else is said.
pub fn direct(matches: &str, more: &str) -> String {
    let mut lines = format!("match = \"{matches}\"\ndependency = \"catalog\"\n");
    for (key, line) in [("deadline", "deadline = \"2s\""), ("in_flight", "in_flight = 64")] {
        if !more.lines().any(|line| line.split('=').next().unwrap_or_default().trim() == key) {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    lines + more
}

impl Wires {
    /// With [`everything`] passed on.
    pub async fn open() -> Self {
        Self::with(everything).await
    }

    pub async fn with(policy: impl FnOnce(SocketAddr) -> Policy) -> Self {
        let origin = Origin::builder().record_raw(true).start().await.expect("an origin");
        let gateway = Gateway::start(&policy(origin.addr()));
        Self { origin, gateway }
    }

    /// With a client's patience of 300 ms, and streams without end.
    pub async fn impatient() -> Self {
        Self::with(|origin| {
            Policy::empty()
                .gateway("limits = { reply_time = \"300ms\" }")
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "idle = \"5s\""))
        })
        .await
    }

    /// A connection to the gateway.
    pub async fn connect(&self) -> Connection {
        Connection::open(self.gateway.addr).await.expect("the gateway accepts").bound(BOUND)
    }

    /// Sends these bytes on a connection of their own and reads what comes until the gateway ends it.
    pub async fn say(&self, bytes: impl AsRef<[u8]>) -> Said {
        let mut connection = self.connect().await;
        connection.send(bytes.as_ref()).await.expect("the gateway reads");
        read_out(&mut connection).await
    }

    /// Waits until these bytes have come to the origin.
    pub async fn until_received(&self, wanted: &[u8]) {
        let coming = async {
            while !self.received().windows(wanted.len()).any(|window| window == wanted) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(BOUND, coming).await.expect("they come in time");
    }

    /// Every byte that came to the origin.
    pub fn received(&self) -> Vec<u8> {
        self.origin.connections().into_iter().flat_map(|connection| connection.received).collect()
    }
}

/// Reads answers until the connection ends.
pub async fn read_out(connection: &mut Connection) -> Said {
    let mut answers = Vec::new();
    while let Ok(answer) = connection.read_response().await {
        answers.push(answer);
    }
    Said { answers, tail: connection.read_to_end().await }
}

impl Said {
    pub fn statuses(&self) -> Vec<u16> {
        self.answers.iter().map(Response::status).collect()
    }

    /// Exactly one answer with this status, and then the end of the connection.
    #[track_caller]
    pub fn refused_with(&self, status: u16, what: &str) {
        assert_eq!(self.statuses(), [status], "{what}: {self:?}");
        self.closed(what);
    }

    /// The gateway ended the connection.
    #[track_caller]
    pub fn closed(&self, what: &str) {
        assert_ne!(self.tail.ending, Ending::TimedOut, "{what}: the connection stays open: {self:?}");
    }
}
