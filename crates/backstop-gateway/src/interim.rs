//! Interim answers (1xx) on their way to the client (RFC 9110 section 15.2).
//!
//! They come in on the task of the dependency's connection and go out on the client's; a small queue lies between. They
//! are for HTTP/1.1 clients only: an HTTP/1.0 client must not get any, and hyper cannot send them in HTTP/2.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};

use crate::edits::Edits;
use crate::hop;
use crate::timed_io::Side;
use crate::upstream::Interim;

/// More than any origin sends for one request; further ones are left out.
const QUEUED_MAX: usize = 16;

/// One connection's way for interim answers.
pub(crate) struct Writer {
    /// Those of the present request. Replaced when a request ends whose upstream may still tell of more.
    way: RefCell<Way>,
    side: Side,
}

struct Way {
    queue: Arc<Mutex<Queue>>,
    forwarder: Interim,
}

#[derive(Default)]
struct Queue {
    heads: VecDeque<(StatusCode, HeaderMap)>,
    waker: Option<Waker>,
}

impl Way {
    fn new() -> Self {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let filled = Arc::clone(&queue);
        let forwarder = Interim(Arc::new(move |status, headers| {
            let mut queue = lock(&filled);
            if queue.heads.len() < QUEUED_MAX {
                queue.heads.push_back((status, headers.clone()));
            }
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
        }));
        Self { queue, forwarder }
    }
}

impl Writer {
    pub(crate) fn new(side: Side) -> Self {
        Self { way: RefCell::new(Way::new()), side }
    }

    /// The answer under way may wait this long for the client to take it.
    pub(crate) fn set_reply_time(&self, reply_time: Duration) {
        self.side.set_reply_time(reply_time);
    }

    /// What the upstream tells of interim answers.
    pub(crate) fn forwarder(&self) -> Interim {
        self.way.borrow().forwarder.clone()
    }

    /// Runs the answering of one request, and writes interim answers as they come. What the operator removes from the answer
    /// is removed from them too.
    pub(crate) async fn alongside<F: Future>(&self, answering: F, edits: &Edits) -> F::Output {
        let mut answering = pin!(answering);
        let queue = Arc::clone(&self.way.borrow().queue);
        let output = poll_fn(|context| {
            let output = answering.as_mut().poll(context);
            let mut queue = lock(&queue);
            // Also those that came together with the answer: no byte of it is written before this returns.
            while let Some((status, headers)) = queue.heads.pop_front() {
                self.side.interim(&encode(status, headers, edits));
            }
            if output.is_pending() {
                match &mut queue.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
            }
            output
        });
        let output = output.await;
        lock(&queue).waker = None;
        let mut way = self.way.borrow_mut();
        if Arc::strong_count(&way.forwarder.0) > 1 {
            // The call was given up and goes on elsewhere. What it still tells is nobody's.
            *way = Way::new();
        }
        output
    }
}

/// Runs the answering of one request, alongside its client's interim answers where it can get any.
pub(crate) async fn alongside<F: Future>(client: Option<&Writer>, answering: F, edits: &Edits) -> F::Output {
    match client {
        Some(client) => client.alongside(answering, edits).await,
        None => answering.await,
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The head as it is written in HTTP/1.1, without what belongs to the dependency's connection, and without a length, which an
/// answer without content must not have (RFC 9110 section 8.6).
fn encode(status: StatusCode, mut headers: HeaderMap, edits: &Edits) -> Vec<u8> {
    let _nothing_follows = hop::strip(&mut headers);
    headers.remove(CONTENT_LENGTH);
    edits.remove_from(&mut headers);
    let mut head =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or("")).into_bytes();
    for (name, value) in &headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}
