//! The live table: what clients get, drawn anew several times a second; without a terminal, one line per phase.

use std::fmt::Write;
use std::time::Duration;

use crate::printer::Printer;

use super::board::{Board, Counts};
use super::script::PHASES;

/// Draws where the incident stands.
pub(super) struct Table {
    printer: Printer,
    total: Duration,
    /// Lines of the last drawing, to be drawn over.
    drawn: usize,
}

impl Table {
    pub(super) fn new(printer: Printer, total: Duration) -> Self {
        Self { printer, total, drawn: 0 }
    }

    /// Draws over the last drawing.
    pub(super) fn draw(&mut self, board: &Board, phase: usize, elapsed: Duration) {
        if !self.printer.is_terminal() {
            return;
        }
        let text = frame(board, phase, elapsed, self.total);
        let lines = text.lines().count();
        let mut out = self.back();
        for line in text.lines() {
            // Each line to its end, so that a shorter one leaves nothing of the last.
            let _infallible = writeln!(out, "{line}\u{1b}[K");
        }
        self.printer.raw(&out);
        self.drawn = lines;
    }

    /// A phase is over: without a terminal this is its one line.
    pub(super) fn phase_over(&mut self, board: &Board, phase: usize) {
        if !self.printer.is_terminal() {
            self.printer.line(format_args!("{}", summary(phase, &board.phase(phase))));
        }
    }

    /// Leaves the last drawing and goes on below it.
    pub(super) fn clear(&mut self) {
        self.drawn = 0;
        self.printer.line(format_args!(""));
    }

    fn back(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\u{1b}[{}A\r", self.drawn) }
    }
}

fn frame(board: &Board, present: usize, elapsed: Duration, total: Duration) -> String {
    let mut text = String::new();
    let seconds = elapsed.as_secs_f64().min(total.as_secs_f64());
    let _infallible = writeln!(text, "{seconds:5.1} of {} s\n", total.as_secs());
    let _infallible = writeln!(text, "{:44}  THROUGH BACKSTOP                            DIRECTLY", "");
    let _infallible = writeln!(
        text,
        "{:44}  {:>6} {:>6} {:>8} {:>8} {:>7}    {:>6} {:>6} {:>6} {:>8}",
        "", "live", "copies", "prepared", "refused", "oldest", "right", "broken", "errors", "slowest"
    );
    for (number, phase) in PHASES.iter().enumerate() {
        let mark = if number == present { ">" } else { " " };
        let _infallible = write!(text, "{mark} {:42}  ", phase.title);
        if number <= present {
            row(&mut text, &board.phase(number));
        }
        text.push('\n');
    }
    let counts = board.total();
    let _infallible = write!(text, "  {:42}  ", "in all");
    row(&mut text, &counts);
    let forbidden = counts.backstop.forbidden;
    let max_age = board.max_age().as_secs();
    let _infallible =
        write!(text, "\n\n  answers that the policy forbids: {forbidden}; copies may be {max_age} s old\n");
    text
}

fn row(text: &mut String, counts: &Counts) {
    let (backstop, direct) = (&counts.backstop, &counts.direct);
    let _infallible = write!(
        text,
        "{:>6} {:>6} {:>8} {:>8} {:>5} s    {:>6} {:>6} {:>6} {:>6.1} s",
        backstop.live,
        backstop.copies,
        backstop.prepared,
        backstop.refused,
        backstop.oldest_s,
        direct.right,
        direct.broken,
        direct.errors,
        direct.slowest.as_secs_f64(),
    );
}

fn summary(phase: usize, counts: &Counts) -> String {
    let (backstop, direct) = (&counts.backstop, &counts.direct);
    let title = PHASES.get(phase).map_or("", |phase| phase.title);
    format!(
        "{}/{} {title}: through Backstop {} live, {} copies (oldest {} s), {} prepared, {} refused, {} forbidden; directly {} right, {} broken, {} errors (slowest {:.1} s)",
        phase + 1,
        PHASES.len(),
        backstop.live,
        backstop.copies,
        backstop.oldest_s,
        backstop.prepared,
        backstop.refused,
        backstop.forbidden,
        direct.right,
        direct.broken,
        direct.errors,
        direct.slowest.as_secs_f64(),
    )
}
