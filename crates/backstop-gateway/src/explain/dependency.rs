//! A dependency that does what it is told, at the other end of connections in memory.

use std::collections::VecDeque;
use std::fmt;
use std::future::{pending, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::failure::FailureKind;
use backstop_engine::time::Mono;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;

use super::answers::{Answers, Asked};
use super::question::Happens;
use crate::upstream::{Connecting, Script, Stream};

/// What fits on its way in one direction.
const PIPE_BYTES: usize = 256 * 1024;
/// More than the head of any request here.
const HEAD_BYTES: usize = 256 * 1024;

/// A call that a dependency received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The dependency.
    pub dependency: Box<str>,
    /// When its connection was begun, since the request began.
    pub at: Duration,
    /// Method and target; `None` if no request came over the connection.
    pub request: Option<Box<str>>,
    /// What happens to it, in one word.
    pub what: Box<str>,
    /// Its number, over all dependencies.
    pub(super) number: u64,
}

/// One dependency.
#[derive(Clone)]
pub(crate) struct Dependency(Arc<Inner>);

struct Inner {
    name: Box<str>,
    clock: Clock,
    answers: Arc<Answers>,
    state: Mutex<State>,
    /// A request has come.
    asked: Notify,
}

#[derive(Debug)]
struct State {
    /// What happens to the calls to come; the last goes on for ever.
    to_come: VecDeque<Happens>,
    calls: Vec<Begun>,
}

/// A call.
#[derive(Debug)]
struct Begun {
    at: Mono,
    /// Over all dependencies.
    number: u64,
    request: Option<Box<str>>,
    happens: Happens,
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dependency").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Dependency {
    pub(crate) fn new(name: &str, clock: &Clock, answers: &Arc<Answers>) -> Self {
        let state = State { to_come: VecDeque::from([Happens::Ok]), calls: Vec::new() };
        let (clock, answers) = (clock.clone(), Arc::clone(answers));
        let (name, state, asked) = (name.into(), Mutex::new(state), Notify::new());
        Self(Arc::new(Inner { name, clock, answers, state, asked }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// From now on its calls come to this.
    pub(crate) fn does(&self, happens: impl IntoIterator<Item = Happens>) {
        self.lock().to_come = happens.into_iter().collect();
    }

    /// Waits until a request has come.
    pub(crate) async fn was_asked(&self) {
        self.0.asked.notified().await;
    }

    /// The calls since this moment.
    pub(crate) fn calls(&self, begun: Mono) -> Vec<Call> {
        let state = self.lock();
        let since = state.calls.iter().filter(|call| call.at >= begun);
        let call = |call: &Begun| Call {
            dependency: self.0.name.clone(),
            at: begun.until(call.at),
            request: call.request.clone(),
            what: call.happens.word(),
            number: call.number,
        };
        since.map(call).collect()
    }

    /// Forgets the calls so far.
    pub(crate) fn forget(&self) {
        self.lock().calls.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection is begun: what comes of it, and the number of its call.
    fn begin(&self) -> (Happens, usize) {
        let now = self.0.clock.mono();
        let mut state = self.lock();
        let next = state.to_come.front().copied().unwrap_or(Happens::Ok);
        if state.to_come.len() > 1 {
            state.to_come.pop_front();
        }
        let number = self.0.answers.next_number();
        state.calls.push(Begun { at: now, number, request: None, happens: next });
        let number = state.calls.len() - 1;
        (next, number)
    }

    fn received(&self, number: usize, asked: &Asked) {
        if let Some(call) = self.lock().calls.get_mut(number) {
            call.request = Some(format!("{} {}", asked.method, asked.target).into());
        }
        self.0.asked.notify_one();
    }

    /// One exchange, and the end of its connection.
    async fn serve(self, mut stream: DuplexStream, happens: Happens, number: usize) {
        let Some(asked) = read(&mut stream).await else { return };
        self.received(number, &asked);
        let bytes = match happens {
            Happens::Fails(FailureKind::ReadTimeout) => return pending().await,
            Happens::Fails(FailureKind::Protocol) => b"this is no HTTP\r\n\r\n".to_vec(),
            Happens::Fails(FailureKind::Incomplete) => {
                self.0.answers.answer(&self.0.name, Happens::Ok, &asked, false)
            }
            // A close before the first byte and a reset are one failure.
            Happens::Fails(_) => return,
            answered => self.0.answers.answer(&self.0.name, answered, &asked, true),
        };
        let _the_caller_left = stream.write_all(&bytes).await;
        let _the_caller_left = stream.shutdown().await;
    }
}

impl Script for Dependency {
    fn resolve(&self, _host: &str, port: u16) -> Option<Arc<[SocketAddr]>> {
        let is_unknown = self.lock().to_come.front() == Some(&Happens::Fails(FailureKind::Dns));
        if is_unknown {
            let _counted = self.begin();
            return None;
        }
        Some([SocketAddr::from((Ipv4Addr::LOCALHOST, port))].into())
    }

    fn connect(&self, _address: SocketAddr) -> Connecting {
        let (happens, number) = self.begin();
        match happens {
            Happens::Fails(FailureKind::ConnectTimeout) => Box::pin(pending()),
            Happens::Fails(kind @ (FailureKind::Dns | FailureKind::Connect | FailureKind::Tls)) => {
                Box::pin(ready(Err(kind)))
            }
            Happens::Fails(FailureKind::Write) => Box::pin(ready(Ok(Stream::Broken))),
            happens => {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                tokio::task::spawn_local(self.clone().serve(theirs, happens, number));
                Box::pin(ready(Ok(Stream::Told(ours))))
            }
        }
    }
}

/// The request, with its content read to its end; `None` if it does not come.
async fn read(stream: &mut DuplexStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > HEAD_BYTES || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.parse::<Method>().ok()?, words.next()?.to_owned());
    let mut fields = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        fields.append(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value.trim()).ok()?);
    }
    let length: Option<usize> =
        fields.get("content-length").and_then(|length| length.to_str().ok()?.parse().ok());
    let is_whole = |bytes: &[u8]| match length {
        Some(length) => bytes.len() >= end + length,
        None if fields.contains_key("transfer-encoding") => bytes.ends_with(b"0\r\n\r\n"),
        None => true,
    };
    while !is_whole(&bytes) {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Asked { method, target, fields })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

impl Happens {
    /// In one word.
    pub(crate) fn word(self) -> Box<str> {
        match self {
            Happens::Ok => "ok".into(),
            Happens::Incorrect => "incorrect".into(),
            Happens::Denied => "deny".into(),
            Happens::Status(status) => status.to_string().into(),
            Happens::Fails(kind) => {
                FailureKind::TOKENS.get(kind.index()).copied().unwrap_or("protocol").into()
            }
        }
    }
}
