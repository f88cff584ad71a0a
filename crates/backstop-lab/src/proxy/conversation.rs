//! One connection that speaks HTTP/1.1: requests one after the other, each passed on or met by a fault.

use std::net::SocketAddr;

use bytes::BytesMut;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time};

use crate::origin::Request;

use super::{
    Call, Ended, Fault, MARKER, Moment, Writes,
    acceptor::End,
    answer,
    call::Entry,
    message::{self, NoMore, Whole},
    relay::{self, Given, Shape},
    site::Site,
};

/// Serves one connection to its end.
pub(crate) async fn serve(down: &mut TcpStream, site: &Site, own: SocketAddr) -> End {
    let mut buffer = BytesMut::new();
    let mut up: Option<TcpStream> = None;
    loop {
        let (request, head) = match message::read_head(down, &mut buffer, up.as_mut()).await {
            Ok(read) => read,
            Err(NoMore::Closed) => return End::Close,
            Err(NoMore::NotHttp) => return End::Reset,
        };
        let fault = site.now().and_then(|now| site.shared.schedule.of_call(site.upstream, now));
        let call = begin(site, &request, fault);
        let Ok(body) = message::read_body(down, &mut buffer, request.framing).await else {
            call.ends(Ended::CallerLeft);
            return End::Close;
        };
        let whole = Whole { request, head: message::with_host(&head, own, &site.address), body };
        if let Some(end) = exchange(down, &mut buffer, &mut up, site, &whole, fault, call).await {
            return end;
        }
    }
}

fn begin(site: &Site, request: &Request, fault: Option<Fault>) -> Entry {
    let call = Call {
        upstream: site.upstream,
        marker: request.fields.get(MARKER).and_then(|value| value.parse().ok()),
        method: request.method.clone(),
        target: request.target.clone(),
        began: site.shared.elapsed(),
        fault: fault.map(Fault::name),
        ..Call::default()
    };
    site.shared.journal.begin(call, &site.shared.clock)
}

/// One request and its answer. `Some` when the connection ends with it.
async fn exchange(
    down: &mut TcpStream,
    buffer: &mut BytesMut,
    up: &mut Option<TcpStream>,
    site: &Site,
    whole: &Whole,
    fault: Option<Fault>,
    call: Entry,
) -> Option<End> {
    let shape = match fault {
        Some(Fault::Hang) => {
            relay::until_left(down, buffer).await;
            call.ends(Ended::CallerLeft);
            return Some(End::Close);
        }
        Some(Fault::HangUp) => return Some(End::Close),
        Some(Fault::Reset(Moment::BeforeHead)) => return Some(End::Reset),
        Some(Fault::Garbage) => {
            let _caller_gone = down.write_all(answer::GARBAGE).await;
            return Some(End::Close);
        }
        Some(Fault::Status(status)) => {
            return own(down, whole, answer::page(status), Shape::Whole, call).await;
        }
        Some(Fault::WrongBody) => return own(down, whole, answer::page(200), Shape::Whole, call).await,
        Some(Fault::Slow(delay)) => {
            tokio::select! {
                () = time::sleep(delay) => {}
                () = relay::until_left(down, buffer) => {
                    call.ends(Ended::CallerLeft);
                    return Some(End::Close);
                }
            }
            Shape::Whole
        }
        Some(Fault::Drip(pause)) => Shape::Drip(pause),
        Some(Fault::Truncate) => Shape::Half(End::Close),
        Some(Fault::Reset(Moment::AfterHead)) => Shape::Half(End::Reset),
        Some(Fault::Date(ahead)) => Shape::Dated(ahead),
        Some(Fault::Age(age)) => Shape::Aged(age),
        Some(Fault::Refuse | Fault::Flap(_) | Fault::Full(_)) | None => Shape::Whole,
    };
    if site.shared.writes == Writes::Withhold && Writes::is_write(&whole.request.method) {
        return own(down, whole, answer::withheld(), shape, call).await;
    }
    pass_on(down, buffer, up, site, whole, shape, call).await
}

/// Answers with these bytes.
async fn own(
    down: &mut TcpStream,
    whole: &Whole,
    bytes: bytes::Bytes,
    shape: Shape,
    call: Entry,
) -> Option<End> {
    let mut given = Given::own(&bytes, &whole.request.method);
    finish(relay::give(down, &mut BytesMut::new(), None, &mut given, shape, &call).await, call)
}

async fn pass_on(
    down: &mut TcpStream,
    buffer: &mut BytesMut,
    up: &mut Option<TcpStream>,
    site: &Site,
    whole: &Whole,
    shape: Shape,
    call: Entry,
) -> Option<End> {
    if up.is_none() {
        match TcpStream::connect(&*site.address).await {
            Ok(stream) => {
                let _only_slower = stream.set_nodelay(true);
                *up = Some(stream);
            }
            Err(_) => return Some(End::Reset),
        }
    }
    let stream = up.as_mut()?;
    call.note(|call| call.passed_on = true);
    let sent = async {
        stream.write_all(&whole.head).await?;
        stream.write_all(&whole.body).await
    };
    if sent.await.is_err() {
        return Some(End::Reset);
    }
    let mut given = Given::of(&whole.request.method);
    finish(relay::give(down, buffer, Some(stream), &mut given, shape, &call).await, call)
}

/// Writes down how it ended, and says whether the connection does.
fn finish(given: Result<bool, relay::Break>, call: Entry) -> Option<End> {
    match given {
        Ok(keeps) => {
            call.ends(Ended::Whole);
            (!keeps).then_some(End::Close)
        }
        Err(relay::Break::CallerLeft) => {
            call.ends(Ended::CallerLeft);
            Some(End::Close)
        }
        Err(relay::Break::Cut(end)) => Some(end),
    }
}
