//! What a person sees while a drill is played: a bar on a terminal, else a line whenever something breaks or heals.

use backstop_lab::drill::{Progress, Scenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printer::Printer;

/// Tells how far a drill has come.
pub(crate) struct Watch {
    bar: Option<ProgressBar>,
    printer: Printer,
    broken: Vec<String>,
}

impl Watch {
    /// Begins to tell of a drill.
    pub(crate) fn new(scenario: &Scenario, printer: Printer) -> Self {
        let bar = printer.is_error_terminal().then(|| bar(scenario));
        if bar.is_none() {
            let seconds = scenario.duration.as_secs_f64();
            printer.note(format_args!("{}: about {seconds:.0} s; {}", scenario.name, scenario.about));
        }
        Self { bar, printer, broken: Vec::new() }
    }

    /// Tells where it stands.
    pub(crate) fn tell(&mut self, progress: &Progress) {
        let [normal, fallback, rejected, others] = progress.answers;
        let answers =
            format!("{normal} normal, {fallback} alternatives, {rejected} refused, {others} failed");
        let mut broken = progress.broken.clone();
        broken.dedup();
        let words = if broken.is_empty() { "all works".to_owned() } else { broken.join(", ") };
        match &self.bar {
            Some(bar) => {
                bar.set_position(u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX));
                bar.set_message(format!("{answers}; {words}"));
            }
            None if broken != self.broken => {
                self.printer
                    .note(format_args!("  {:>6.1} s  {words}; {answers}", progress.elapsed.as_secs_f64()));
            }
            None => {}
        }
        self.broken = broken;
    }

    /// Ends to tell.
    pub(crate) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(scenario: &Scenario) -> ProgressBar {
    let length = u64::try_from(scenario.duration.as_millis()).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(scenario.name.clone());
    bar
}
