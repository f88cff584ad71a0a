use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use backstop::upstream::BrokenOff;
use backstop::{PermitBody, ReplyBody};
use http::{HeaderMap, Response, response};
use http_body::{Body, Frame};
use tokio_test::task::{self, Spawn};

use super::catalog::{Fault, ScriptedBody};

type Answered = Result<Response<ReplyBody<PermitBody<ScriptedBody>>>, Fault>;

/// A request under way. It moves only when it is polled; dropping it is the client leaving.
pub(crate) struct Pending(Spawn<Pin<Box<dyn Future<Output = Answered> + Send>>>);

impl Pending {
    pub(crate) fn new(future: Pin<Box<dyn Future<Output = Answered> + Send>>) -> Self {
        Self(task::spawn(future))
    }

    /// Goes on as far as it can without waiting.
    pub(crate) fn poll(&mut self) -> Poll<Answered> {
        loop {
            match self.0.poll() {
                Poll::Pending if self.0.is_woken() => {}
                poll => return poll,
            }
        }
    }

    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// Whether something happened that it waited for.
    pub(crate) fn is_woken(&self) -> bool {
        self.0.is_woken()
    }

    /// The answer's head and its body as it comes. It must not need to wait.
    pub(crate) fn answered(mut self) -> (response::Parts, Reading) {
        let Poll::Ready(answered) = self.poll() else { panic!("the request waits for something") };
        parts(answered)
    }

    /// The whole answer, once the thread that reads the disk has done its part.
    pub(crate) fn reply_after_disk(mut self) -> Reply {
        loop {
            match self.poll() {
                Poll::Ready(answered) => return whole(parts(answered)),
                Poll::Pending => std::thread::yield_now(),
            }
        }
    }

    /// The error that went through to the caller.
    pub(crate) fn error(mut self) -> Fault {
        match self.poll() {
            Poll::Ready(Err(fault)) => fault,
            Poll::Ready(Ok(response)) => panic!("answered with {}", response.status()),
            Poll::Pending => panic!("the request waits for something"),
        }
    }

    /// The whole answer. It must not need to wait.
    pub(crate) fn reply(self) -> Reply {
        whole(self.answered())
    }
}

fn parts(answered: Answered) -> (response::Parts, Reading) {
    let (head, body) = answered.unwrap().into_parts();
    (head, Reading(task::spawn(body)))
}

fn whole((head, reading): (response::Parts, Reading)) -> Reply {
    let (body, trailers) = reading.rest();
    Reply { status: head.status.as_u16(), headers: head.headers, body, trailers }
}

/// A body on its way to the client.
pub(crate) struct Reading(Spawn<ReplyBody<PermitBody<ScriptedBody>>>);

impl Reading {
    pub(crate) fn poll(&mut self) -> Poll<Option<Result<Frame<bytes::Bytes>, BrokenOff>>> {
        self.0.enter(|context, body| body.poll_frame(context))
    }

    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// The next piece, which must be there.
    pub(crate) fn piece(&mut self) -> String {
        match self.poll() {
            Poll::Ready(Some(Ok(frame))) => text(&frame.into_data().unwrap()),
            other => panic!("{other:?}"),
        }
    }

    /// How it broke off.
    pub(crate) fn broken(&mut self) -> &'static str {
        match self.poll() {
            Poll::Ready(Some(Err(BrokenOff::Client(fault)))) => {
                panic!("no client breaks off here: {fault:?}")
            }
            Poll::Ready(Some(Err(BrokenOff::Dependency(failure, _)))) => {
                backstop::engine::failure::Cause::Failed(failure).token()
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    /// All that is left, which must be there.
    pub(crate) fn rest(mut self) -> (Result<String, BrokenOff>, Option<HeaderMap>) {
        let mut content = String::new();
        let mut trailers = None;
        loop {
            match self.poll() {
                Poll::Ready(None) => return (Ok(content), trailers),
                Poll::Ready(Some(Err(broken))) => return (Err(broken), trailers),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => content.push_str(&text(&data)),
                    Err(frame) => trailers = frame.into_trailers().ok(),
                },
                Poll::Pending => panic!("the body waits for something after {content:?}"),
            }
        }
    }
}

fn text(data: &[u8]) -> String {
    String::from_utf8(data.to_vec()).unwrap()
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Result<String, BrokenOff>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        self.body.as_ref().unwrap()
    }

    /// Status, content and `Backstop` field: `200 v1; outcome=...`. Problem details are left out: the field says the same.
    pub(crate) fn line(&self) -> String {
        let mut line = self.status.to_string();
        if self.field("content-type") != Some("application/problem+json") && !self.text().is_empty() {
            line.push(' ');
            line.push_str(self.text());
        }
        if let Some(field) = self.field("backstop") {
            line.push_str("; ");
            line.push_str(field);
        }
        line
    }
}
