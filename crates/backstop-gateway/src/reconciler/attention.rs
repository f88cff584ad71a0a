//! Calling a person: a line in the log for each operation, and a word to a webhook where the policy names one.
//!
//! Neither has anything in it but the operation's name, its route, why, and since when: no key and no content.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use backstop_engine::incident::Moment;
use backstop_engine::operation::Record;
use backstop_engine::time::Wall;
use backstop_store::ledger::Raised;
use tokio::task::JoinHandle;

use super::Webhook;
use super::counts::add;
use super::turn::Shared;
use super::webhook::Outbox;

/// Calls a person.
#[derive(Debug)]
pub(super) struct Caller {
    shared: Rc<Shared>,
    outbox: Option<Rc<Outbox>>,
}

impl Caller {
    /// With a webhook, if there is one, which is told from a task of its own: that never ends but by a panic.
    pub(super) fn new(webhook: Option<Webhook>, shared: &Rc<Shared>) -> (Self, Option<JoinHandle<()>>) {
        let telling = webhook.map(|webhook| {
            let outbox = Rc::new(Outbox::default());
            let telling = super::webhook::run(webhook, Rc::clone(&outbox), Rc::clone(shared));
            (outbox, tokio::task::spawn_local(telling))
        });
        let (outbox, telling) = telling.unzip();
        (Self { shared: Rc::clone(shared), outbox }, telling)
    }

    /// These have come to need a person, and so many more.
    pub(super) fn call(&self, raised: Vec<Raised>, left_out: u64) {
        let counts = &self.shared.counts;
        counts.raised.fetch_add(left_out, Ordering::Relaxed);
        for raised in raised {
            add(&counts.raised);
            tracing::error!(
                target: "backstop::operations",
                operation = %raised.id,
                route = %raised.route,
                why = raised.why.token(),
                created = %date(raised.created),
                since = %date(raised.since),
                "an operation needs a person: find out with its upstream whether it happened, then decide it with \
                 `backstop operations resolve ID --outcome OUTCOME --reason TEXT`"
            );
            if self.outbox.as_ref().is_some_and(|outbox| !outbox.put(raised)) {
                add(&counts.webhook_left_out);
            }
        }
        if left_out > 0 {
            tracing::error!(
                target: "backstop::operations",
                left_out,
                "more operations need a person than are named here: `backstop operations list --state attention` names all"
            );
        }
    }

    /// So many needed a person before this process began; this one the longest.
    pub(super) fn summarise(&self, count: u64, oldest: &Record) {
        let identity = &oldest.identity;
        tracing::error!(
            target: "backstop::operations",
            count,
            oldest = %identity.id,
            route = %identity.route,
            why = oldest.progress.state().why(),
            created = %date(identity.created),
            "operations from before this start need a person: `backstop operations list --state attention` names them; find \
             out with their upstreams, then decide each with `backstop operations resolve ID --outcome OUTCOME --reason TEXT`"
        );
    }
}

/// A date as RFC 3339 has it.
pub(super) fn date(wall: Wall) -> String {
    Moment { wall, ..Moment::default() }.date()
}
