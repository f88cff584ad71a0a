//! The thread that writes.
//!
//! It takes what waits, does all of it in one transaction, and tells everybody after the commit. One key that is taken fails no
//! other command: that is an answer, not an error.
//!
//! - **No room**: the transaction is undone, the room that is held for outcomes is given up, and the same commands are done once
//!   more without new operations. Those are refused until that room is free again. If even that does not fit, everybody is told.
//! - **Any other error**: nobody knows what the disk holds, so nothing is acknowledged any more. What is to be done then is
//!   handed in (by default the process ends), and this thread ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use backstop_engine::operation::Epoch;

use super::batch::{Answer, Batch, Command, Tally, Work};
use super::checkpoint::{Checkpoint, pass};
use super::options::LedgerOptions;
use super::queue::Queue;
use super::rows::{Rows, RowsError};
use super::standing::{Counters, add};
use super::upkeep::Raised;

/// The most that waits for a sweep to tell it.
const RAISED: usize = 1024;

pub(super) struct Writer {
    pub(super) rows: Box<dyn Rows>,
    pub(super) epoch: Epoch,
    pub(super) queue: Arc<Queue>,
    pub(super) counters: Arc<Counters>,
    pub(super) options: LedgerOptions,
    /// New operations are refused until there is room.
    pub(super) is_full: bool,
    /// What came to need a person, until a sweep tells it.
    pub(super) raised: Vec<Raised>,
    /// How many more did.
    pub(super) raised_left_out: u64,
}

/// The queue ends with its thread, however that ends.
struct Ends(Arc<Queue>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Writer {
    pub(super) fn run(mut self) {
        let ends = Ends(self.queue.clone());
        loop {
            let commands = self.queue.take(self.options.batch.max(1));
            if commands.is_empty() {
                break;
            }
            if self.does(commands).is_err() {
                break;
            }
        }
        // The file is let go before anybody hears of it.
        drop(self);
        drop(ends);
    }

    /// Does the commands, makes that durable, and tells everybody.
    pub(super) fn does(&mut self, commands: Vec<Command>) -> Result<(), ()> {
        match self.write(&commands) {
            Ok(answers) => {
                for (command, answer) in commands.into_iter().zip(answers) {
                    command.done.with(answer);
                }
                Ok(())
            }
            Err(error) => {
                self.counters.fail(&error);
                // Before anybody who waits hears of it: the process may end here, and nobody acts on half of it.
                (self.options.on_failed_disk)(&error);
                Err(())
            }
        }
    }

    /// Does the commands and makes that durable; what to tell, for each.
    fn write(&mut self, commands: &[Command]) -> Result<Vec<Answer>, String> {
        if self.is_full && commands.iter().any(|command| matches!(command.work, Work::Sweep(..))) {
            let has_room = self.rows.take_reserve();
            self.set_full(!has_room);
        }
        let mut done = self.attempt(commands, !self.is_full);
        if let Err(RowsError::Full(_)) = done {
            self.undo()?;
            self.rows.release_reserve();
            self.set_full(true);
            done = self.attempt(commands, false);
        }
        match done {
            Ok((mut answers, mut tally)) => {
                self.raise(std::mem::take(&mut tally.raised), &mut answers);
                self.count(&tally, commands.len());
                Ok(answers)
            }
            Err(RowsError::Full(_)) => {
                self.undo()?;
                add(&self.counters.no_room, commands.len() as u64);
                Ok(commands.iter().map(|_| Answer::NoRoom).collect())
            }
            Err(RowsError::Failed(message)) => Err(message),
        }
    }

    fn attempt(&mut self, commands: &[Command], may_begin: bool) -> Result<(Vec<Answer>, Tally), RowsError> {
        self.rows.begin()?;
        let tally = Tally::default();
        let mut batch = Batch { rows: &mut *self.rows, epoch: self.epoch, may_begin, tally };
        let mut answers = Vec::with_capacity(commands.len());
        for command in commands {
            answers.push(batch.run(&command.work)?);
        }
        let tally = batch.tally;
        pass_written(&answers);
        self.rows.commit()?;
        if answers.iter().any(|answer| matches!(answer, Answer::New(_))) {
            pass(Checkpoint::IntentCommitted);
        }
        Ok((answers, tally))
    }

    /// What came to need a person is told by the next sweep, once it is durable.
    fn raise(&mut self, raised: Vec<Raised>, answers: &mut [Answer]) {
        let room = RAISED.saturating_sub(self.raised.len());
        self.raised_left_out += raised.len().saturating_sub(room) as u64;
        self.raised.extend(raised.into_iter().take(room));
        for answer in answers {
            if let Answer::Swept(swept) = answer {
                swept.raised = std::mem::take(&mut self.raised);
                swept.raised_left_out = std::mem::take(&mut self.raised_left_out);
            }
        }
    }

    fn undo(&mut self) -> Result<(), String> {
        self.rows.roll_back().map_err(|error| error.to_string())
    }

    fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
        self.counters.is_full.store(u64::from(is_full), Ordering::Relaxed);
    }

    fn count(&self, tally: &Tally, commands: usize) {
        for (counter, by) in self.counters.states.iter().zip(tally.states) {
            // Two's complement: adding what stands for a negative number subtracts.
            counter.fetch_add(by.cast_unsigned(), Ordering::Relaxed);
        }
        tally.refused.iter().for_each(|why| self.counters.refuse(*why));
        add(&self.counters.contradicted, tally.contradicted);
        add(&self.counters.no_room, tally.no_room);
        if let Some([unknown, attention]) = tally.oldest {
            self.counters.set_oldest(unknown, attention);
        }
        add(&self.counters.commits, 1);
        add(&self.counters.committed, commands as u64);
    }
}

/// What is in a transaction that is not committed.
fn pass_written(answers: &[Answer]) {
    for answer in answers {
        match answer {
            Answer::New(_) => pass(Checkpoint::IntentWritten),
            Answer::Recorded(_) => pass(Checkpoint::OutcomeWritten),
            Answer::Swept(swept) if swept.emptied + swept.forgotten > 0 => {
                pass(Checkpoint::RetentionWritten);
            }
            _ => {}
        }
    }
}
