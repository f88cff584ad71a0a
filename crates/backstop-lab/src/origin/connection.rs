//! One connection, from accept to its end: read a request, do what its behaviour says, and again.

use std::{
    future,
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{io::AsyncWriteExt as _, net::TcpStream, net::tcp::WriteHalf, sync::watch, time};

use super::{
    Behaviour, ExpectContinue, OnAccept, Request, RequestFraming, Then,
    behaviour::{Action, Reads},
    incoming::{Incoming, Stop},
    journal::Journal,
    perform::{perform, wait},
    plan::Plan,
    server::Shared,
};

/// How long a closed connection is drained, so that the close does not turn into a reset that takes the answer with
/// it.
const LINGER: Duration = Duration::from_secs(1);
/// How often a computed behaviour may give another computed one.
const COMPUTED_MAX: usize = 8;

/// Serves `stream` until it ends. `ended` turns to `Some` when every connection is to be ended.
pub(crate) async fn serve(
    mut stream: TcpStream,
    shared: Arc<Shared>,
    mut ended: watch::Receiver<Option<Then>>,
) {
    let Some(number) = shared.journal.connected() else { return };
    let open = Open { journal: &shared.journal, number };
    // Pieces must leave one by one; without this the kernel would join them.
    let _unsupported = stream.set_nodelay(true);
    let then = tokio::select! {
        biased;
        then = told_to_end(&mut ended) => then,
        then = exchanges(&mut stream, number, &shared) => then,
    };
    if then == Then::Reset {
        let _gone = stream.set_zero_linger();
    }
    drop(stream);
    drop(open);
}

async fn told_to_end(ended: &mut watch::Receiver<Option<Then>>) -> Then {
    loop {
        if ended.changed().await.is_err() {
            return Then::Close;
        }
        if let Some(then) = *ended.borrow_and_update() {
            return then;
        }
    }
}

/// Requests and answers, until the connection is to end.
async fn exchanges(stream: &mut TcpStream, number: u64, shared: &Shared) -> Then {
    let (read, mut write) = stream.split();
    let mut incoming = Incoming::new(read, number, &shared.journal, shared.limits);
    match shared.on_accept() {
        OnAccept::Serve => {}
        OnAccept::Close => return Then::Close,
        OnAccept::Reset => return Then::Reset,
        OnAccept::Hang => return future::pending().await,
    }
    loop {
        let request = match incoming.head().await {
            Ok(Some(request)) => request,
            Ok(None) | Err(Stop::PeerLeft) => return Then::Close,
            Err(stop) => return refuse(stop, &mut incoming, &mut write).await,
        };
        let then = exchange(request, &mut incoming, &mut write, shared).await;
        if then != Then::KeepAlive {
            return then;
        }
    }
}

/// One request. `KeepAlive` when another may follow.
async fn exchange(
    mut request: Request,
    incoming: &mut Incoming<'_>,
    write: &mut WriteHalf<'_>,
    shared: &Shared,
) -> Then {
    let chosen = shared.rules().choose(&request.method, &request.target);
    let place = shared.journal.arrived(&mut request);
    let mut flight = InFlight { journal: &shared.journal, finished: false };
    let has_body = request.framing != RequestFraming::None;
    let mut read = Ok(());
    if chosen.reads == Reads::Whole {
        if has_body && request.fields.lists("expect", "100-continue") {
            let rule = *shared.expect_continue.lock().unwrap_or_else(PoisonError::into_inner);
            continue_when(rule, incoming, write).await;
        }
        read = incoming.body(&mut request).await;
    } else {
        request.complete = !has_body;
    }
    let request = Arc::new(request);
    shared.journal.body_ended(place, &request);
    match read {
        Ok(()) => {}
        Err(Stop::PeerLeft) => return Then::Close,
        Err(stop) => return refuse(stop, incoming, write).await,
    }
    let reads = chosen.reads;
    let then = act(chosen, &request, incoming, write, &mut flight).await;
    if then == Then::Close || (reads != Reads::Whole && has_body && then == Then::KeepAlive) {
        drop(flight);
        return close(incoming, write, reads).await;
    }
    if then == Then::KeepAlive && !request.keeps_alive() { Then::Close } else { then }
}

/// Waits and sends. Watches the peer meanwhile, unless the behaviour reads nothing more.
async fn act(
    chosen: Behaviour,
    request: &Arc<Request>,
    incoming: &mut Incoming<'_>,
    write: &mut WriteHalf<'_>,
    flight: &mut InFlight<'_>,
) -> Then {
    let reads_on = chosen.reads != Reads::Stalls;
    let keeps_working = chosen.keeps_working;
    let done = {
        let work = work(chosen, request, write);
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => done,
            () = incoming.peer_left(), if reads_on => {
                if !keeps_working {
                    return Then::Close;
                }
                work.await
            }
        }
    };
    match done {
        Ok(Then::Hang) if reads_on => {
            incoming.peer_left().await;
            Then::Close
        }
        Ok(Then::Hang) => future::pending().await,
        Ok(then) => {
            flight.finished = true;
            then
        }
        Err(_) => Then::Close,
    }
}

async fn work(chosen: Behaviour, request: &Arc<Request>, write: &mut WriteHalf<'_>) -> std::io::Result<Then> {
    let mut behaviour = chosen;
    for _ in 0..COMPUTED_MAX {
        wait(&behaviour.waits).await;
        let plan = match behaviour.action {
            Action::Compute(compute) => {
                behaviour = compute.run(Arc::clone(request)).await;
                continue;
            }
            Action::Answer(answer) => Plan::answer(&answer, request, SystemTime::now()),
            Action::Raw(bytes, then) => Plan::raw(bytes, then),
            Action::End(then) => return Ok(then),
        };
        return perform(&plan, write).await;
    }
    Ok(Then::Close)
}

/// Answers an `Expect: 100-continue` by the rule.
async fn continue_when(rule: ExpectContinue, incoming: &mut Incoming<'_>, write: &mut WriteHalf<'_>) {
    let after = match rule {
        ExpectContinue::Never => return,
        ExpectContinue::AtOnce => Duration::ZERO,
        ExpectContinue::After(after) => after,
    };
    tokio::select! {
        biased;
        () = incoming.some_bytes(), if !after.is_zero() => return,
        () = time::sleep(after) => {}
    }
    if !incoming.has_bytes() {
        let _gone = write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }
}

/// Answers what is no request, and closes.
async fn refuse(stop: Stop, incoming: &mut Incoming<'_>, write: &mut WriteHalf<'_>) -> Then {
    let line = match stop {
        Stop::TooLarge => "431 Request Header Fields Too Large",
        _ => "400 Bad Request",
    };
    let answer = format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let _gone = write.write_all(answer.as_bytes()).await;
    close(incoming, write, Reads::HeadOnly).await
}

/// Sends FIN, and reads on for a moment where bytes may still be under way.
async fn close(incoming: &mut Incoming<'_>, write: &mut WriteHalf<'_>, reads: Reads) -> Then {
    let _gone = write.shutdown().await;
    if reads == Reads::HeadOnly {
        let _drained = time::timeout(LINGER, incoming.drain()).await;
    }
    Then::Close
}

/// Counts an open connection for as long as it lives, cancellation included.
struct Open<'a> {
    journal: &'a Journal,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.journal.disconnected(self.number);
    }
}

/// Counts a request in flight for as long as it lives, cancellation included.
struct InFlight<'a> {
    journal: &'a Journal,
    finished: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.journal.left_flight(self.finished);
    }
}
