//! An explanation for a person.

use std::fmt::Write;

use backstop::walk::Role;
use backstop_gateway::{Answer, Explanation, Line, Question, Way, written};

use super::sentence;

/// Fields that tell nothing of what was decided.
const PLUMBING: [&str; 4] = ["connection", "content-length", "transfer-encoding", "via"];

/// The whole explanation.
pub(super) fn text(question: &Question, explanation: &Explanation, colour: bool) -> String {
    let page = Page { colour };
    let mut text = String::new();
    page.request(&mut text, question, explanation);
    page.limits(&mut text, explanation);
    if !explanation.before.is_empty() {
        page.heading(&mut text, "before");
        explanation.before.iter().for_each(|before| push(&mut text, &format!("  {before}")));
    }
    for way in &explanation.ways {
        page.way(&mut text, way);
    }
    page.answer(&mut text, &explanation.answer);
    page.calls(&mut text, explanation);
    text
}

/// How wide what a limit includes may be: beside its name and time, within 110 columns.
const WIDTH: usize = 72;

/// The lines of a text.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

struct Page {
    colour: bool,
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

impl Page {
    fn bold(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn faint(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn heading(&self, text: &mut String, heading: &str) {
        push(text, "");
        push(text, &self.bold(heading));
    }

    /// `file:line` and what stands there.
    fn line(&self, line: Option<&Line>) -> String {
        line.map_or_else(String::new, |line| {
            self.faint(&format!("{}:{}: {}", line.file, line.line, line.text))
        })
    }

    fn request(&self, text: &mut String, question: &Question, explanation: &Explanation) {
        push(text, &self.bold(&format!("{} {}", question.method, question.target)));
        let Some(route) = &explanation.route else {
            push(text, "  no route matches");
            return;
        };
        push(
            text,
            &format!(
                "  route `{}` ({}): `{}` is the most specific that matches",
                route.name, route.class, route.rule
            ),
        );
        for (name, value) in &route.parameters {
            push(text, &format!("    {{{name}}} is {value}"));
        }
        push(text, &format!("    {}", self.line(route.line.as_ref())));
    }

    fn limits(&self, text: &mut String, explanation: &Explanation) {
        if explanation.limits.is_empty() {
            return;
        }
        self.heading(text, "time limits");
        for limit in &explanation.limits {
            for (number, line) in wrapped(limit.includes).iter().enumerate() {
                let (name, time) =
                    if number == 0 { (&*limit.name, written(limit.time)) } else { ("", String::new()) };
                push(text, &format!("  {name:<22} {time:>10}  {line}"));
            }
            if limit.line.is_some() {
                push(text, &format!("  {:<33}  {}", "", self.line(limit.line.as_ref())));
            }
        }
    }

    fn way(&self, text: &mut String, way: &Way) {
        let heading = match way.role {
            Role::Request => "steps".to_owned(),
            Role::Part => format!("steps of the part on route `{}`", way.route),
            Role::Fill => format!("steps of the read for everybody on route `{}`", way.route),
        };
        self.heading(text, &heading);
        for (step, line) in &way.steps {
            push(text, &format!("  {:>12}  {}", written(step.at), sentence::of(step)));
            if line.is_some() {
                push(text, &format!("  {:>12}    {}", "", self.line(line.as_ref())));
            }
        }
        if !way.has_decided {
            push(text, &format!("  {:>12}  it was not waited for any longer", ""));
        }
    }

    fn answer(&self, text: &mut String, answer: &Answer) {
        self.heading(text, "answer");
        let mut line =
            format!("  {} after {}: outcome {}", answer.status, written(answer.took), answer.outcome);
        if &*answer.source != "none" {
            let _infallible = write!(line, ", source {}", answer.source);
        }
        if &*answer.reason != "none" {
            let _infallible = write!(line, ", reason {}", answer.reason);
        }
        push(text, &line);
        if answer.is_cut {
            push(text, "  it is cut off before its end, visibly");
        }
        for (name, value) in answer.fields.iter().filter(|(name, _)| !PLUMBING.contains(&&**name)) {
            push(text, &format!("  {name}: {value}"));
        }
    }

    fn calls(&self, text: &mut String, explanation: &Explanation) {
        self.heading(text, "what dependencies receive");
        if explanation.calls.is_empty() {
            push(text, "  nothing");
        }
        for call in &explanation.calls {
            let request = call.request.as_deref().unwrap_or("a connection, and no request");
            let at = written(call.at);
            push(text, &format!("  {at:>12}  `{}`: {request} ({})", call.dependency, call.what));
        }
    }
}
