//! What outlives the process beside copies: incidents and the states of breakers.
//!
//! Once a second, by the gateway's clock, both are looked at; what changed is written by a thread of its own into the
//! store's folder. No request waits for that, and none is on this path. Without a disk for copies nothing is written.
//!
//! A folder that could not be used at the start, because an earlier process was still at its end or the disk was not there, is
//! taken up late: an operator's orders and incidents, before anything is written over them.

mod folder;
pub(crate) mod json;
mod keeper;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::engine::Engine;
use backstop_engine::time::Mono;
use backstop_policy::{AuthorizerSettings, DependencySettings, RouteSettings, StoreSettings};

use crate::breakers::Breakers;
use crate::incidents::Book;
use crate::status::Board;

pub(crate) use folder::Folder;
pub(crate) use keeper::Keeper;

/// How often it is looked at.
const TICK: Duration = Duration::from_secs(1);

/// Both, and who writes them.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) book: Arc<Book>,
    pub(crate) breakers: Arc<Breakers>,
    /// How everything stands, and since when.
    pub(crate) board: Arc<Board>,
    pub(crate) keeper: Option<Arc<Keeper>>,
    clock: Clock,
    opened: Mono,
}

impl State {
    /// Takes up what an earlier process wrote. A bad disk is no error: it is said in the log and done without.
    pub(crate) fn open(
        store: &StoreSettings,
        engine: &Arc<Engine>,
        clock: &Clock,
        dependencies: &[DependencySettings],
        authorizers: &[AuthorizerSettings],
        routes: &[RouteSettings],
    ) -> Self {
        let now = clock.now();
        let mut folder = (store.disk_bytes > 0).then(|| Folder::new(&*store.path));
        let is_held = folder.as_mut().is_some_and(hold);
        // What another process uses is not ours to take up. A folder that cannot be used now is tried again.
        let readable = folder.as_ref().filter(|_| is_held).map(|held| Folder::new(held.path()));
        let keeper = folder.and_then(start).map(Arc::new);
        let book = Arc::new(Book::open(engine, now, readable.as_ref(), keeper.clone()));
        let breakers =
            Arc::new(Breakers::open(engine, clock, dependencies, readable.as_ref(), keeper.clone()));
        if let Some(keeper) = keeper.as_ref().filter(|_| !is_held) {
            let (book, breakers, clock) = (Arc::downgrade(&book), Arc::downgrade(&breakers), clock.clone());
            keeper.take_up_first(move |folder| {
                if let (Some(book), Some(breakers)) = (book.upgrade(), breakers.upgrade()) {
                    breakers.take_up_late(folder);
                    book.take_up_late(folder, clock.now());
                }
            });
        }
        let board = Arc::new(Board::open(engine, authorizers, routes, now));
        Self { book, breakers, board, keeper, clock: clock.clone(), opened: now.mono }
    }

    /// Looks at both, once a second.
    pub(crate) async fn watch(self) {
        // Since the start and since the last look, not since the sleep began: a late look is no further delay.
        let mut last = self.opened;
        loop {
            self.clock.sleep_until(last.after(TICK)).await;
            let now = self.clock.now();
            self.board.tick(now);
            self.book.look(now);
            self.breakers.note(now);
            last = now.mono;
        }
    }

    /// A last look; what is to be written is on disk afterwards, or the time is over. Whether it is. Blocks.
    pub(crate) fn close(&self, within: Duration) -> bool {
        let now = self.clock.now();
        self.book.close(now);
        self.breakers.note(now);
        self.keeper.as_ref().is_none_or(|keeper| keeper.close(within))
    }
}

fn hold(folder: &mut Folder) -> bool {
    let held = folder.hold();
    if let Err(error) = &held {
        say(folder.path(), error);
    }
    held.is_ok()
}

fn start(folder: Folder) -> Option<Keeper> {
    let path = folder.path().to_owned();
    Keeper::start(folder).map_err(|error| say(&path, &error)).ok()
}

fn say(path: &Path, error: &std::io::Error) {
    tracing::error!(
        target: "backstop::state",
        folder = %path.display(),
        %error,
        "cannot be used: incidents and the states of breakers are kept in memory only"
    );
}
