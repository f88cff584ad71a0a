//! What one command does within a transaction, and who is told after it.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::entropy::Entropy;
use backstop_engine::operation::{
    self, Begin, Change, ClientKey, Decision, Epoch, Fence, Intent, IntentError, Keep, OperationId,
    PendingClaim, PendingIntent, Record, Refused, Report, Retention, Schedule, Scope, SecondLook, State,
};
use backstop_engine::time::{Mono, Now};

use super::completion::{Completes, LedgerError};
use super::history::{Actor, HistoryEvent, Resolution};
use super::rows::{Filter, Rows, RowsError, SecondLooks};
use super::{Begun, Claimed, Raised, Recorded, Shown, Swept, Upkeep};

/// The most rows of each kind that one sweep changes.
const SWEPT: usize = 256;

/// What is to be done.
#[derive(Debug)]
pub(super) enum Work {
    Begin(Box<Intent>, Now),
    Record(Box<Report>, Now),
    Look(Scope, OperationId, Now),
    Find(Scope, ClientKey, Now),
    Claim(Box<str>, usize, Duration, Now),
    Sweep(Arc<[Upkeep]>, u64, Now),
    SecondLooks(Box<str>, SecondLooks),
    Routes,
    List(Filter),
    Show(OperationId),
    Resolve(OperationId, Decision, Resolution, Now),
}

/// Who is told.
#[derive(Debug)]
pub(super) enum Done {
    Begun(Completes<Result<Begun, IntentError>>),
    Recorded(Completes<Recorded>),
    Looked(Completes<Option<Box<Record>>>),
    Claimed(Completes<Claimed>),
    Swept(Completes<Swept>),
    SecondLooks(Completes<Vec<SecondLook>>),
    Routes(Completes<Vec<Box<str>>>),
    Listed(Completes<Vec<Record>>),
    Shown(Completes<Option<Shown>>),
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) work: Work,
    pub(super) done: Done,
}

/// What was done, to be told once it is durable.
#[derive(Debug)]
pub(super) enum Answer {
    New(PendingIntent),
    Again(Box<Record>),
    OtherRequest,
    NotAnIntent(IntentError),
    NoRoom,
    Recorded(Recorded),
    Looked(Option<Box<Record>>),
    Claimed(Vec<PendingClaim>, Option<Mono>),
    Swept(Swept),
    SecondLooks(Vec<SecondLook>),
    Routes(Vec<Box<str>>),
    Listed(Vec<Record>),
    Shown(Option<Box<Shown>>),
}

impl Done {
    pub(super) fn with(self, answer: Answer) {
        match (self, answer) {
            (Done::Begun(done), Answer::New(pending)) => done.with(Ok(Ok(Begun::New(pending.committed())))),
            (Done::Begun(done), Answer::Again(record)) => done.with(Ok(Ok(Begun::Again(record)))),
            (Done::Begun(done), Answer::OtherRequest) => done.with(Ok(Ok(Begun::OtherRequest))),
            (Done::Begun(done), Answer::NotAnIntent(error)) => done.with(Ok(Err(error))),
            (Done::Recorded(done), Answer::Recorded(recorded)) => done.with(Ok(recorded)),
            (Done::Looked(done), Answer::Looked(record)) => done.with(Ok(record)),
            (Done::Claimed(done), Answer::Claimed(claims, oldest_due)) => {
                let claims = claims.into_iter().map(PendingClaim::committed).collect();
                done.with(Ok(Claimed { claims, oldest_due }));
            }
            (Done::SecondLooks(done), Answer::SecondLooks(looks)) => done.with(Ok(looks)),
            (Done::Routes(done), Answer::Routes(routes)) => done.with(Ok(routes)),
            (Done::Swept(done), Answer::Swept(swept)) => done.with(Ok(swept)),
            (Done::Listed(done), Answer::Listed(records)) => done.with(Ok(records)),
            (Done::Shown(done), Answer::Shown(shown)) => done.with(Ok(shown.map(|shown| *shown))),
            (done, Answer::NoRoom) => done.refuse(&LedgerError::NoRoom),
            // Work and whom to tell are made together (`thread`), so these are all pairs.
            (done, _) => done.refuse(&LedgerError::Closed),
        }
    }

    pub(super) fn refuse(self, error: &LedgerError) {
        let error = error.clone();
        match self {
            Done::Begun(done) => done.with(Err(error)),
            Done::Recorded(done) => done.with(Err(error)),
            Done::Looked(done) => done.with(Err(error)),
            Done::Claimed(done) => done.with(Err(error)),
            Done::Swept(done) => done.with(Err(error)),
            Done::SecondLooks(done) => done.with(Err(error)),
            Done::Routes(done) => done.with(Err(error)),
            Done::Listed(done) => done.with(Err(error)),
            Done::Shown(done) => done.with(Err(error)),
        }
    }
}

/// One transaction's work.
pub(super) struct Batch<'r> {
    pub(super) rows: &'r mut dyn Rows,
    pub(super) epoch: Epoch,
    /// Whether new operations may be written.
    pub(super) may_begin: bool,
    pub(super) tally: Tally,
}

/// What is counted once the transaction is durable.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) states: [i64; 6],
    pub(super) refused: Vec<Refused>,
    pub(super) contradicted: u64,
    /// What came to need a person.
    pub(super) raised: Vec<Raised>,
    pub(super) no_room: u64,
    pub(super) oldest: Option<[Option<backstop_engine::time::Wall>; 2]>,
}

impl Tally {
    fn count(&mut self, state: State, by: i64) {
        if let Some(count) = self.states.get_mut(state.index()) {
            *count += by;
        }
    }
}

impl Batch<'_> {
    pub(super) fn run(&mut self, work: &Work) -> Result<Answer, RowsError> {
        match work {
            Work::Begin(intent, now) => self.begin(intent, now),
            Work::Record(report, now) => self.record(report, now).map(Answer::Recorded),
            Work::Look(scope, id, now) => self.look(scope, *id, now).map(Answer::Looked),
            Work::Find(scope, key, now) => self.find(scope, key, now).map(Answer::Looked),
            Work::Claim(route, most, query_timeout, now) => self.claim(route, *most, *query_timeout, now),
            Work::Sweep(upkeep, entropy, now) => self.sweep(upkeep, *entropy, now).map(Answer::Swept),
            Work::SecondLooks(route, which) => {
                let found = self.rows.absent(route, which)?;
                Ok(Answer::SecondLooks(found.into_iter().filter_map(operation::second_look).collect()))
            }
            Work::Routes => self.rows.routes().map(Answer::Routes),
            Work::List(filter) => self.rows.list(filter).map(Answer::Listed),
            Work::Show(id) => self.show(*id).map(Answer::Shown),
            Work::Resolve(id, decision, by, now) => {
                self.resolve(*id, *decision, by, now).map(Answer::Recorded)
            }
        }
    }

    fn begin(&mut self, intent: &Intent, now: &Now) -> Result<Answer, RowsError> {
        let existing = self.rows.by_key(&intent.scope, &intent.key)?;
        self.begin_after(existing, intent, now)
    }

    fn begin_after(
        &mut self,
        existing: Option<Record>,
        intent: &Intent,
        now: &Now,
    ) -> Result<Answer, RowsError> {
        let pending = match operation::begin(existing.as_ref(), intent.clone(), self.epoch, now) {
            Ok(Begin::New(pending)) => pending,
            Ok(Begin::OtherRequest) => return Ok(Answer::OtherRequest),
            Err(error) => return Ok(Answer::NotAnIntent(error)),
            Ok(Begin::Again) => {
                let Some(mut record) = existing else { return Ok(Answer::OtherRequest) };
                self.wake(&mut record, now)?;
                return Ok(Answer::Again(Box::new(record)));
            }
        };
        if !self.may_begin {
            self.tally.no_room += 1;
            return Ok(Answer::NoRoom);
        }
        if !self.rows.insert(pending.record())? {
            // Another replica was faster; or the name is taken, 128 random bits that came twice or were not random, and must
            // not be forwarded.
            return match self.rows.by_key(&intent.scope, &intent.key)? {
                Some(record) => self.begin_after(Some(record), intent, now),
                None => Ok(Answer::OtherRequest),
            };
        }
        self.tally.count(pending.record().progress.state(), 1);
        Ok(Answer::New(pending))
    }

    fn record(&mut self, report: &Report, now: &Now) -> Result<Recorded, RowsError> {
        let Some(record) = self.rows.by_id(report.id())? else { return Ok(Recorded::Unheard) };
        match operation::apply(&record, report, self.epoch, now) {
            Ok(change) => {
                // What was kept of an answer goes on being kept when its verdict is contradicted.
                let answer = report.answer().cloned().or_else(|| record.answer.clone());
                self.change(Record { answer, ..record }, &change, Actor::Reporter, now)
            }
            Err(why) => Ok(self.refused(why, record)),
        }
    }

    fn refused(&mut self, why: Refused, record: Record) -> Recorded {
        self.tally.refused.push(why);
        Recorded::Refused { why, record: Box::new(record) }
    }

    /// Writes a change, if what it was decided on is still there.
    fn change(
        &mut self,
        mut record: Record,
        change: &Change,
        actor: Actor,
        now: &Now,
    ) -> Result<Recorded, RowsError> {
        let fence = record.progress.fence();
        record.progress = change.progress;
        if !self.update(&record, fence)? {
            return Ok(self.refused(Refused::Stale, record));
        }
        self.moved(&record, change, actor, now)?;
        Ok(Recorded::Changed {
            record: Box::new(record),
            from: change.from,
            is_contradiction: change.is_contradiction(),
        })
    }

    fn update(&mut self, record: &Record, fence: Fence) -> Result<bool, RowsError> {
        self.rows.update(record, fence)
    }

    /// Counts and notes that a record went from one state to another.
    fn moved(&mut self, record: &Record, change: &Change, actor: Actor, now: &Now) -> Result<(), RowsError> {
        if change.from == change.to() {
            return Ok(());
        }
        self.tally.count(change.from, -1);
        self.tally.count(change.to(), 1);
        self.tally.contradicted += u64::from(change.is_contradiction());
        // Whoever has it already is called once, whatever else comes up.
        if !matches!(change.from, State::Attention(_)) {
            self.tally.raised.extend(Raised::of(record));
        }
        let event = HistoryEvent { at: now.wall, actor, from: change.from, to: change.to() };
        self.rows.note(record.identity.id, &event)
    }

    fn wake(&mut self, record: &mut Record, now: &Now) -> Result<(), RowsError> {
        if let Some(progress) = operation::wake(record, self.epoch, now) {
            record.progress = progress;
            self.update(record, progress.fence())?;
        }
        Ok(())
    }

    fn look(&mut self, scope: &Scope, id: OperationId, now: &Now) -> Result<Option<Box<Record>>, RowsError> {
        let Some(mut record) = self.rows.by_id(id)?.filter(|record| record.identity.scope == *scope) else {
            return Ok(None);
        };
        self.wake(&mut record, now)?;
        Ok(Some(Box::new(record)))
    }

    fn find(&mut self, scope: &Scope, key: &ClientKey, now: &Now) -> Result<Option<Box<Record>>, RowsError> {
        let Some(mut record) = self.rows.by_key(scope, key)? else { return Ok(None) };
        self.wake(&mut record, now)?;
        Ok(Some(Box::new(record)))
    }

    fn claim(
        &mut self,
        route: &str,
        most: usize,
        query_timeout: Duration,
        now: &Now,
    ) -> Result<Answer, RowsError> {
        let mut claims = Vec::new();
        for record in self.rows.due(route, now.mono, most.min(SWEPT))? {
            let fence = record.progress.fence();
            if let Ok(claim) = operation::claim(record, query_timeout, self.epoch, now)
                && self.update(claim.record(), fence)?
            {
                claims.push(claim);
            }
        }
        let oldest_due = self.rows.oldest_due_of(route)?;
        Ok(Answer::Claimed(claims, oldest_due))
    }

    fn sweep(&mut self, upkeep: &[Upkeep], entropy: u64, now: &Now) -> Result<Swept, RowsError> {
        let mut swept = Swept::default();
        let draw = |record: &Record| {
            let mut of_route = upkeep.iter().filter(|upkeep| upkeep.route == record.identity.route);
            let schedule = of_route.next().map_or_else(Schedule::default, |upkeep| upkeep.schedule);
            schedule.draw(bits_for(record, entropy))
        };
        for record in self.rows.lapsed(now.mono, SWEPT)? {
            if let Ok(change) = operation::lease_ended(&record, draw(&record), self.epoch, now) {
                self.change(record, &change, Actor::Time, now)?;
                swept.lapsed += 1;
                swept.has_more |= swept.lapsed == SWEPT as u64;
            }
        }
        for record in self.rows.overdue(now.wall, SWEPT)? {
            if let Ok(change) = operation::overdue(&record, draw(&record), self.epoch, now) {
                self.change(record, &change, Actor::Time, now)?;
                swept.overdue += 1;
                swept.has_more |= swept.overdue == SWEPT as u64;
            }
        }
        for Upkeep { route, retention, .. } in upkeep {
            self.retain(route, retention, now, &mut swept)?;
        }
        self.tally.oldest = Some([self.rows.oldest("unknown")?, self.rows.oldest("attention")?]);
        Ok(swept)
    }

    fn retain(
        &mut self,
        route: &str,
        retention: &Retention,
        now: &Now,
        swept: &mut Swept,
    ) -> Result<(), RowsError> {
        let before = |age: Duration| {
            let age = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
            backstop_engine::time::Wall::from_unix_ns(now.wall.as_unix_ns().saturating_sub(age))
        };
        let old = self.rows.decided_before(route, before(retention.tombstone), false, SWEPT)?;
        let whole = self.rows.decided_before(route, before(retention.content), true, SWEPT)?;
        let is_full = old.len() == SWEPT || whole.len() == SWEPT;
        let done = swept.emptied + swept.forgotten;
        for record in old.into_iter().chain(whole) {
            match operation::retained(&record, retention, now) {
                Keep::Whole => {}
                Keep::Tombstone => {
                    let fence = record.progress.fence();
                    let answer =
                        record.answer.as_ref().map(|answer| operation::KeptAnswer::of_status(answer.status));
                    self.update(&Record { answer, ..record }, fence)?;
                    swept.emptied += 1;
                }
                Keep::Nothing => {
                    let id = record.identity.id;
                    // It may stand in both lists.
                    if self.rows.by_id(id)?.is_some() {
                        self.rows.forget(id)?;
                        self.tally.count(record.progress.state(), -1);
                        swept.forgotten += 1;
                    }
                }
            }
        }
        // What a date that is not believed keeps is not more to be done.
        swept.has_more |= is_full && swept.emptied + swept.forgotten > done;
        Ok(())
    }

    fn show(&mut self, id: OperationId) -> Result<Option<Box<Shown>>, RowsError> {
        let Some(record) = self.rows.by_id(id)? else { return Ok(None) };
        Ok(Some(Box::new(Shown { record, history: self.rows.history(id)? })))
    }

    fn resolve(
        &mut self,
        id: OperationId,
        decision: Decision,
        by: &Resolution,
        now: &Now,
    ) -> Result<Recorded, RowsError> {
        let Some(record) = self.rows.by_id(id)? else { return Ok(Recorded::Unheard) };
        match operation::resolve(&record, decision, self.epoch, now) {
            Ok(change) => self.change(record, &change, Actor::Person(by.clone()), now),
            Err(why) => Ok(self.refused(why, record)),
        }
    }

    /// What was open in an earlier life is taken over by this one. Gives back how many there were, at most `most`.
    pub(super) fn recover(&mut self, entropy: u64, most: usize, now: &Now) -> Result<usize, RowsError> {
        let records = self.rows.open_before(self.epoch, most)?;
        let count = records.len();
        for mut record in records {
            let fence = record.progress.fence();
            if let Some(change) = operation::recover(&record, bits_for(&record, entropy), self.epoch, now) {
                record.progress = change.progress;
                self.update(&record, fence)?;
                self.moved(&record, &change, Actor::Recovery, now)?;
            }
        }
        Ok(count)
    }
}

/// Random bits of each record's own, whatever order they come in.
fn bits_for(record: &Record, entropy: u64) -> u64 {
    let (name, _) = record.identity.id.as_bytes().split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    Entropy::new(entropy ^ u64::from_be_bytes(*name)).bits()
}
