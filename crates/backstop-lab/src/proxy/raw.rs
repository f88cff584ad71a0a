//! A connection that speaks no HTTP: bytes pass both ways, and each piece from the caller is a call.

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};

use super::{Call, Ended, Fault, Moment, acceptor::End, answer::GARBAGE, call::Entry, site::Site};

const READ_BYTES: usize = 16 * 1024;

/// Passes bytes until one side closes or a fault ends it.
pub(crate) async fn serve(down: &mut TcpStream, site: &Site) -> End {
    let Ok(mut up) = TcpStream::connect(&*site.address).await else { return End::Reset };
    let _only_slower = up.set_nodelay(true);
    let (mut asked, mut answered) =
        (BytesMut::with_capacity(READ_BYTES), BytesMut::with_capacity(READ_BYTES));
    let mut call: Option<Entry> = None;
    loop {
        tokio::select! {
            read = down.read_buf(&mut asked) => {
                if !matches!(read, Ok(1..)) {
                    return left(call);
                }
                let fault = site.now().and_then(|now| site.shared.schedule.of_call(site.upstream, now));
                let begun = begin(site, fault);
                match fault {
                    Some(Fault::Hang) => {
                        silent(down).await;
                        begun.ends(Ended::CallerLeft);
                        return End::Close;
                    }
                    Some(Fault::HangUp) => return End::Close,
                    Some(Fault::Reset(Moment::BeforeHead)) => return End::Reset,
                    Some(Fault::Garbage) => {
                        let _gone = down.write_all(GARBAGE).await;
                        return End::Close;
                    }
                    Some(Fault::Slow(delay)) => time::sleep(delay).await,
                    _ => {}
                }
                begun.note(|call| call.passed_on = true);
                if up.write_all(&asked.split()).await.is_err() {
                    return End::Reset;
                }
                call = Some(begun);
            }
            read = up.read_buf(&mut answered) => {
                if !matches!(read, Ok(1..)) {
                    return End::Close;
                }
                if down.write_all(&answered.split()).await.is_err() {
                    return left(call);
                }
                if let Some(call) = call.take() {
                    call.ends(Ended::Whole);
                }
            }
        }
    }
}

fn begin(site: &Site, fault: Option<Fault>) -> Entry {
    let call = Call {
        upstream: site.upstream,
        began: site.shared.elapsed(),
        fault: fault.map(Fault::name),
        ..Call::default()
    };
    site.shared.journal.begin(call, &site.shared.clock)
}

fn left(call: Option<Entry>) -> End {
    if let Some(call) = call {
        call.ends(Ended::CallerLeft);
    }
    End::Close
}

/// Reads and forgets until the caller leaves.
async fn silent(down: &mut TcpStream) {
    let mut rest = BytesMut::with_capacity(READ_BYTES);
    while matches!(down.read_buf(&mut rest).await, Ok(1..)) {
        rest.clear();
    }
}
