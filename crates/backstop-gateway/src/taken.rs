//! Replies that an HTTP/2 client does not take.
//!
//! In HTTP/2 each stream has a window of its own. A client that leaves it shut takes nothing although its connection lives
//! and every write succeeds, and the body is not asked for its next piece. So each reply tells when it last gave a piece
//! away; one that waited for its whole reply time ends the connection, and with it everything that its replies hold.
//!
//! A piece is given away when it was written to the connection, not when the HTTP/2 implementation has it: that takes a
//! whole piece for a window of one byte. So a [`Piece`] tells when it goes, and a reply is watched until its last one has
//! gone.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use backstop::clock::{Clock, Sleep};
use backstop_engine::time::Mono;
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};

use crate::connection::Streaming;
use crate::timed_io::{STEP, Side};

/// The replies of one connection.
pub(crate) struct Replies {
    slots: RefCell<Vec<Weak<Slot>>>,
    /// How many slots there may be before those of replies that have ended are taken out.
    most: Cell<usize>,
    watcher: RefCell<Option<Waker>>,
    reply_time: Duration,
    clock: Clock,
}

/// So few slots are not worth looking through.
const FEW: usize = 16;

struct Slot {
    /// Since when the client could take the next piece; `None` while there is none to take.
    since: Cell<Option<Mono>>,
    /// Pieces on their way.
    pieces: Cell<u32>,
    /// Whether the body had no further piece when it was asked last.
    starved: Cell<bool>,
    /// Bytes taken since then.
    taken: Cell<usize>,
    clock: Clock,
}

impl Slot {
    fn restart(&self) {
        self.taken.set(0);
        self.since.set(Some(self.clock.mono()));
    }
}

impl Replies {
    pub(crate) fn new(reply_time: Duration, clock: Clock) -> Self {
        let (slots, watcher) = Default::default();
        Self { slots, most: Cell::new(FEW), watcher, reply_time, clock }
    }

    /// A reply that is watched.
    pub(crate) fn watch<B>(&self, body: B, streaming: Streaming) -> Taken<B> {
        let slot = Rc::new(Slot {
            since: Cell::new(Some(self.clock.mono())),
            pieces: Cell::new(0),
            starved: Cell::new(false),
            taken: Cell::new(0),
            clock: self.clock.clone(),
        });
        self.track(&slot);
        Taken { body, slot: Some(slot), side: None, _stream: Some(streaming) }
    }

    /// Twice as many slots as live replies are never exceeded but by a few, and each is looked at twice at most: a connection
    /// with a thousand short replies a second keeps a list of those that are under way.
    fn track(&self, slot: &Rc<Slot>) {
        let mut slots = self.slots.borrow_mut();
        if slots.len() >= self.most.get() {
            slots.retain(|slot| slot.strong_count() > 0);
            self.most.set((slots.len() * 2).max(FEW));
        }
        slots.push(Rc::downgrade(slot));
        if let Some(watcher) = self.watcher.borrow_mut().take() {
            watcher.wake();
        }
    }

    /// Ends when a reply was not taken in time. Costs next to nothing while there is none.
    pub(crate) async fn stuck(&self) {
        let mut sleep: Option<Sleep> = None;
        poll_fn(|context| {
            loop {
                if let Some(sleep) = &mut sleep {
                    ready!(Pin::new(sleep).poll(context));
                }
                let now = self.clock.mono();
                match self.next_end(now) {
                    None => {
                        sleep = None;
                        let mut watcher = self.watcher.borrow_mut();
                        if !watcher.as_ref().is_some_and(|watcher| watcher.will_wake(context.waker())) {
                            *watcher = Some(context.waker().clone());
                        }
                        return Poll::Pending;
                    }
                    Some(end) if end <= now => return Poll::Ready(()),
                    // None that begins meanwhile could end sooner.
                    Some(end) => sleep = Some(self.clock.sleep_until(end)),
                }
            }
        })
        .await;
    }

    /// When the first of the replies that wait to be taken has waited too long; `None` without any reply.
    fn next_end(&self, now: Mono) -> Option<Mono> {
        let mut slots = self.slots.borrow_mut();
        slots.retain(|slot| slot.strong_count() > 0);
        let ends = slots.iter().filter_map(Weak::upgrade);
        ends.map(|slot| slot.since.get().unwrap_or(now).after(self.reply_time)).min()
    }
}

/// A reply's body. While it lasts, so does the stream.
pub(crate) struct Taken<B> {
    body: B,
    slot: Option<Rc<Slot>>,
    /// The connection, where its end is the end of this reply: it is told when all of it was given away.
    side: Option<Side>,
    _stream: Option<Streaming>,
}

impl<B> Taken<B> {
    /// A reply that is watched by its connection. With a `side` the end of that connection is its end.
    pub(crate) fn by_connection(body: B, side: Option<Side>) -> Self {
        if let Some(side) = &side {
            side.reset_unless_whole();
        }
        Self { body, slot: None, side, _stream: None }
    }

    fn is_whole(&self) {
        if let Some(side) = &self.side {
            side.is_whole();
        }
    }
}

/// A piece of a reply on its way.
pub(crate) struct Piece<D> {
    data: D,
    slot: Option<Rc<Slot>>,
}

impl<D> Piece<D> {
    fn new(data: D, slot: Option<Rc<Slot>>) -> Self {
        if let Some(slot) = &slot {
            slot.pieces.set(slot.pieces.get() + 1);
        }
        Self { data, slot }
    }
}

impl<D: Buf> Buf for Piece<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn advance(&mut self, bytes: usize) {
        self.data.advance(bytes);
        if let Some(slot) = &self.slot {
            slot.taken.set(slot.taken.get() + bytes);
            if slot.taken.get() >= STEP {
                slot.restart();
            }
        }
    }
}

impl<D> Drop for Piece<D> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.pieces.set(slot.pieces.get() - 1);
            if slot.pieces.get() == 0 && slot.starved.get() {
                slot.since.set(None);
            } else {
                slot.restart();
            }
        }
    }
}

impl<B: Body + Unpin> Body for Taken<B> {
    type Data = Piece<B::Data>;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // Nothing follows trailers.
        if matches!(&frame, Poll::Ready(None))
            || matches!(&frame, Poll::Ready(Some(Ok(frame))) if frame.is_trailers())
        {
            self.is_whole();
        }
        if let Some(slot) = &self.slot {
            slot.starved.set(!matches!(frame, Poll::Ready(Some(Ok(_)))));
            match (slot.pieces.get(), slot.starved.get()) {
                (0, true) => slot.since.set(None),
                (0, false) => slot.restart(),
                // An earlier piece waits; its time goes on.
                _ => {}
            }
        }
        frame.map_ok(|frame| frame.map_data(|data| Piece::new(data, self.slot.clone())))
    }

    fn is_end_stream(&self) -> bool {
        let is_end = self.body.is_end_stream();
        // Who is told so does not ask once more.
        if is_end {
            self.is_whole();
        }
        is_end
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::time::Now;

    fn slot(clock: &Clock) -> Rc<Slot> {
        Rc::new(Slot {
            since: Cell::new(None),
            pieces: Cell::new(0),
            starved: Cell::new(false),
            taken: Cell::new(0),
            clock: clock.clone(),
        })
    }

    /// Three replies stay while ten thousand come and go, and nothing ends in between that would look through the list.
    #[test]
    fn the_list_of_replies_does_not_grow_with_those_that_have_ended() {
        let (clock, _hand) = Clock::manual(Now::default());
        let replies = Replies::new(Duration::from_secs(30), clock.clone());
        let stay: Vec<_> = (0..3).map(|_| slot(&clock)).collect();
        stay.iter().for_each(|slot| replies.track(slot));
        for _ in 0..10_000 {
            replies.track(&slot(&clock));
            assert!(replies.slots.borrow().len() <= FEW, "{}", replies.slots.borrow().len());
        }
        assert!(stay.iter().all(|slot| Rc::weak_count(slot) == 1), "those that stay are watched");
    }

    /// With a hundred that stay, no more than a hundred others are kept beside them.
    #[test]
    fn nor_faster_than_the_replies_that_live() {
        let (clock, _hand) = Clock::manual(Now::default());
        let replies = Replies::new(Duration::from_secs(30), clock.clone());
        let stay: Vec<_> = (0..100).map(|_| slot(&clock)).collect();
        stay.iter().for_each(|slot| replies.track(slot));
        for _ in 0..1_000 {
            replies.track(&slot(&clock));
            assert!(replies.slots.borrow().len() <= 200);
        }
        assert!(stay.iter().all(|slot| Rc::weak_count(slot) == 1));
    }
}
