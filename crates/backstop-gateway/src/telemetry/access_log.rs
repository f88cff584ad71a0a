//! One line for each request, on a disk that may be slow, full or away.
//!
//! Lines wait in a bounded queue, and a thread writes them. What cannot be written is lost and counted; the file is tried again
//! with the next lines. [`Reopen`] has it opened anew, which is what whoever moves the file away asks for; the lines that were
//! put before still go into the old one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use backstop_policy::{AccessFormat, AccessLogSettings};

use super::queue::{Counts, Queue};
use super::{CannotTell, line};
use crate::telemetry::seen::Request;

/// Lines that may wait.
const WAITING: usize = 8192;
/// Lines that are written at once.
const AT_ONCE: usize = 256;

/// Where lines go.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: AccessFormat,
    query: bool,
    queue: Queue<Message>,
}

#[derive(Debug)]
enum Message {
    Line(String),
    Reopen,
    /// Whoever waits until all that was put in before is written.
    End(Sender<()>),
}

/// Has the access log's file opened anew.
#[derive(Clone, Debug)]
pub struct Reopen(Queue<Message>);

impl Reopen {
    /// Asks for it; it is done when the lines before it are written.
    pub fn reopen(&self) {
        self.0.offer(Message::Reopen);
    }
}

impl AccessLog {
    pub(super) fn start(settings: &AccessLogSettings) -> Result<Self, CannotTell> {
        let path = settings.path.clone();
        let file = path
            .as_deref()
            .map(open)
            .transpose()
            .map_err(|source| CannotTell::AccessLog { path: path.clone().unwrap_or_default(), source })?;
        let (queue, messages) = Queue::new(WAITING);
        let writer = Writer { path, file, counts: Arc::clone(queue.counts()), is_failing: false };
        std::thread::Builder::new()
            .name("backstop-access".into())
            .spawn(move || writer.run(&messages))
            .map_err(CannotTell::Thread)?;
        Ok(Self { format: settings.format, query: settings.query, queue })
    }

    pub(super) fn note(&self, request: &Request<'_>) {
        self.queue.offer(Message::Line(line::of(self.format, self.query, request)));
    }

    pub(super) fn counts(&self) -> &Counts {
        self.queue.counts()
    }

    /// What waits is written; `false` if that was not done within the time. Blocks.
    pub(super) fn close(&self, within: Duration) -> bool {
        let (ended, end) = channel();
        self.queue.offer(Message::End(ended));
        end.recv_timeout(within).is_ok()
    }

    pub(crate) fn reopener(&self) -> Reopen {
        Reopen(self.queue.clone())
    }
}

fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

struct Writer {
    /// `None` is standard output.
    path: Option<Box<str>>,
    file: Option<File>,
    counts: Arc<Counts>,
    is_failing: bool,
}

impl Writer {
    /// Writes until nobody puts anything in any more.
    fn run(mut self, messages: &Receiver<Message>) {
        let mut lines = String::new();
        while let Ok(first) = messages.recv() {
            let mut count = 0;
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Line(line) => {
                        lines.push_str(&line);
                        count += 1;
                    }
                    Message::Reopen => {
                        self.write(&mut lines, count);
                        count = 0;
                        self.file = None;
                    }
                    Message::End(ended) => {
                        self.write(&mut lines, count);
                        count = 0;
                        let _nobody_waits = ended.send(());
                    }
                }
                next = if count < AT_ONCE { messages.try_recv().ok() } else { None };
            }
            self.write(&mut lines, count);
        }
    }

    fn write(&mut self, lines: &mut String, count: usize) {
        if count > 0 {
            match self.try_write(lines) {
                Ok(()) => {
                    self.counts.add_told(count);
                    self.is_failing = false;
                }
                Err(error) => {
                    self.counts.add_dropped(count);
                    self.say(&error);
                }
            }
        }
        lines.clear();
    }

    fn try_write(&mut self, lines: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return io::stdout().write_all(lines.as_bytes()) };
        let file = match self.file.take() {
            Some(file) => self.file.insert(file),
            None => self.file.insert(open(path)?),
        };
        file.write_all(lines.as_bytes())
    }

    /// Once for each time that it begins to fail.
    fn say(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::error!(
                target: "backstop::access_log",
                path = self.path.as_deref().unwrap_or("stdout"),
                %error,
                "lines of the access log cannot be written and are lost; requests are answered as usual"
            );
        }
    }
}
