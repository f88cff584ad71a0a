//! What came of one check.

use serde::Serialize;

/// Whether something held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There was nothing to look at, so nothing is known.
    Nothing,
    /// It held every time.
    Held,
    /// It did not.
    Failed,
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, stable.
    pub name: String,
    /// What had to hold.
    pub promise: String,
    /// Whether it did.
    pub verdict: Verdict,
    /// How many times it was looked at.
    pub checked: u64,
    /// How many times it did not hold.
    pub failed: u64,
    /// The first of those, in words.
    pub examples: Vec<String>,
    /// Whether it is what this drill expects, and no promise that is held in every drill.
    #[serde(skip)]
    pub is_expected: bool,
}

/// Most examples that are kept.
const EXAMPLES_MAX: usize = 5;

impl Finding {
    /// One that has looked at nothing yet.
    #[must_use]
    pub fn new(name: &str, promise: impl Into<String>) -> Self {
        let promise = promise.into();
        Self {
            name: name.to_owned(),
            promise,
            verdict: Verdict::Nothing,
            checked: 0,
            failed: 0,
            examples: Vec::new(),
            is_expected: false,
        }
    }

    /// Looks once: it held, or `wrong` says how it did not.
    pub fn look(&mut self, wrong: Option<String>) {
        self.checked += 1;
        match wrong {
            None if self.verdict == Verdict::Nothing => self.verdict = Verdict::Held,
            None => {}
            Some(example) => {
                self.failed += 1;
                self.verdict = Verdict::Failed;
                if self.examples.len() < EXAMPLES_MAX {
                    self.examples.push(example);
                }
            }
        }
    }

    /// The same of what a drill expects. If it `must` have looked and did not, it has not held.
    #[must_use]
    pub fn expected(mut self, must: bool) -> Self {
        self.is_expected = true;
        if must && self.verdict == Verdict::Nothing {
            self.verdict = Verdict::Failed;
            self.examples
                .push("there was nothing to look at: no answer was of this route, kind and time".to_owned());
        }
        self
    }

    /// Looks once, and says how it did not hold only then.
    pub fn hold(&mut self, holds: bool, wrong: impl FnOnce() -> String) {
        self.look((!holds).then(wrong));
    }
}
