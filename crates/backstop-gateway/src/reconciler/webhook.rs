//! Telling a webhook that an operation needs a person.
//!
//! One POST for each, with JSON. Each try has a bound, there are few, and what waits is bounded: an outage of the webhook costs
//! its messages and nothing else. The log has them all.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use backstop_store::ledger::Raised;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde_json::json;
use tokio::sync::Notify;

use super::attention::date;
use super::counts::add;
use super::query::Way;
use super::turn::Shared;
use crate::upstream::Address;

/// The most that waits.
const WAITING: usize = 256;
/// The longest that one try may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The waits after each try that failed; after the last one it is given up.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];

/// Where it is.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    pub(crate) address: Address,
    pub(crate) path: Uri,
    pub(crate) host: HeaderValue,
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: RefCell<VecDeque<Raised>>,
    put: Notify,
}

impl Outbox {
    /// `false` if there is no room.
    pub(super) fn put(&self, raised: Raised) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let has_room = waiting.len() < WAITING;
        if has_room {
            waiting.push_back(raised);
            self.put.notify_one();
        }
        has_room
    }

    async fn next(&self) -> Raised {
        loop {
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                Some(raised) => return raised,
                None => self.put.notified().await,
            }
        }
    }
}

/// Tells what is put in, one after the other, for as long as the thread lives.
pub(super) async fn run(webhook: Webhook, outbox: Rc<Outbox>, shared: Rc<Shared>) {
    let way = Way::new(vec![webhook.address.clone()], TIMEOUT, 1, &shared.clock);
    loop {
        let raised = outbox.next().await;
        if !tell(&webhook, &way, &raised, &shared).await {
            add(&shared.counts.webhook_given_up);
            tracing::warn!(
                target: "backstop::operations",
                operation = %raised.id,
                webhook = %webhook.address,
                "the webhook could not be told that an operation needs a person; it is not told again"
            );
        }
    }
}

async fn tell(webhook: &Webhook, way: &Way, raised: &Raised, shared: &Shared) -> bool {
    let mut waits = WAITS.iter();
    loop {
        let until = shared.clock.mono().after(TIMEOUT);
        let answer = way.exchange(message(webhook, raised), until).await;
        if answer.is_ok_and(|answer| (200..300).contains(&answer.status)) {
            add(&shared.counts.webhook_delivered);
            return true;
        }
        add(&shared.counts.webhook_failed);
        let Some(wait) = waits.next() else { return false };
        shared.clock.sleep_until(shared.clock.mono().after(*wait)).await;
    }
}

fn message(webhook: &Webhook, raised: &Raised) -> Request<Full<Bytes>> {
    let content = json!({
        "operation": raised.id.to_string(),
        "route": &*raised.route,
        "why": raised.why.token(),
        "created": date(raised.created),
        "since": date(raised.since),
    });
    let mut request = Request::new(Full::from(content.to_string()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = webhook.path.clone();
    request.headers_mut().insert(HOST, webhook.host.clone());
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request
}
