//! The origin's own thread: it accepts, and obeys the handle.
//!
//! The thread has a runtime of its own, so that neither a busy caller nor a caller with paused time distorts what
//! the origin does. It ends when the last handle is gone, and every connection with it.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime,
    sync::{mpsc, oneshot, watch},
    time,
};

use super::{
    ExpectContinue, Limits, OnAccept, Then,
    connection::serve,
    journal::Journal,
    listening::{Listening, Port},
    observer::Observer,
    rules::Rules,
};

/// Pause after a failed accept, which is a lack of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What the handles and the connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) journal: Journal,
    pub(crate) limits: Limits,
    pub(crate) expect_continue: Mutex<ExpectContinue>,
    rules: Mutex<Rules>,
    on_accept: Mutex<OnAccept>,
}

impl Shared {
    pub(crate) fn new(
        limits: Limits,
        raw: bool,
        expect_continue: ExpectContinue,
        observer: Option<Observer>,
    ) -> Self {
        Self {
            journal: Journal::new(limits, raw, observer),
            limits,
            expect_continue: Mutex::new(expect_continue),
            rules: Mutex::new(Rules::new(limits.rules)),
            on_accept: Mutex::new(OnAccept::Serve),
        }
    }

    pub(crate) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn on_accept(&self) -> OnAccept {
        *self.on_accept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_on_accept(&self, on_accept: OnAccept) {
        *self.on_accept.lock().unwrap_or_else(PoisonError::into_inner) = on_accept;
    }
}

/// How the origin shall be reachable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    Serving,
    Refusing,
    Full,
}

/// What a handle asks of the thread.
#[derive(Debug)]
pub(crate) enum Command {
    Reach(Reach, oneshot::Sender<io::Result<()>>),
    EndConnections(Then),
}

/// Starts the thread. It has begun to listen when this returns.
pub(crate) async fn start(
    addr: SocketAddr,
    shared: Arc<Shared>,
) -> io::Result<(SocketAddr, mpsc::UnboundedSender<Command>, JoinHandle<()>)> {
    let port = Port::keep(addr)?;
    let addr = port.addr;
    let (commands, received) = mpsc::unbounded_channel();
    let (ready, is_ready) = oneshot::channel();
    let thread = thread::Builder::new().name(format!("origin-{}", addr.port())).spawn(move || {
        let built = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match built {
            Ok(runtime) => runtime,
            Err(error) => {
                let _caller_gone = ready.send(Err(error));
                return;
            }
        };
        runtime.block_on(run(port, shared, received, ready));
    })?;
    is_ready.await.map_err(|_died| io::Error::other("the origin's thread died"))??;
    Ok((addr, commands, thread))
}

async fn run(
    port: Port,
    shared: Arc<Shared>,
    mut commands: mpsc::UnboundedReceiver<Command>,
    ready: oneshot::Sender<io::Result<()>>,
) {
    let mut listening = match Listening::serving(&port) {
        Ok(listening) => listening,
        Err(error) => {
            let _caller_gone = ready.send(Err(error));
            return;
        }
    };
    let _caller_gone = ready.send(Ok(()));
    let ended = watch::Sender::new(None);
    loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                None => return,
                Some(Command::EndConnections(then)) => {
                    ended.send_replace(Some(then));
                }
                Some(Command::Reach(reach, done)) => {
                    let reached = reach_by(reach, &mut listening, &port).await;
                    let _caller_gone = done.send(reached);
                }
            },
            accepted = listening.accept() => match accepted {
                Ok(stream) => {
                    tokio::spawn(serve(stream, Arc::clone(&shared), ended.subscribe()));
                }
                Err(_) => {
                    shared.journal.count(|stats| stats.accept_errors += 1);
                    time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn reach_by(reach: Reach, listening: &mut Listening, port: &Port) -> io::Result<()> {
    // The old socket must be closed before a new one may listen.
    *listening = Listening::Refusing;
    *listening = match reach {
        Reach::Serving => Listening::serving(port)?,
        Reach::Refusing => Listening::Refusing,
        Reach::Full => Listening::full(port).await?,
    };
    Ok(())
}
