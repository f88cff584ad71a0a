//! Which behaviour holds for which request.
//!
//! The rule set last is asked first. A rule is a queue of behaviours: one with a limited number of times leaves the
//! queue when it is used up, the next one takes its place, and a rule whose queue is empty is gone, so that the
//! rule set before it holds again.

use std::collections::VecDeque;

use super::{Behaviour, Matcher};

#[derive(Debug)]
struct Rule {
    matcher: Matcher,
    queue: VecDeque<Behaviour>,
}

#[derive(Debug)]
pub(crate) struct Rules {
    default: Behaviour,
    rules: Vec<Rule>,
    rules_max: usize,
}

impl Rules {
    pub(crate) fn new(rules_max: usize) -> Self {
        Self { default: default_behaviour(), rules: Vec::new(), rules_max }
    }

    /// Sets a rule above all others. A rule for ever with the same matcher below it could never hold again and is
    /// dropped, as is the oldest rule when there are too many.
    pub(crate) fn set(&mut self, matcher: Matcher, behaviours: impl IntoIterator<Item = Behaviour>) {
        let queue: VecDeque<_> = behaviours.into_iter().collect();
        if queue.iter().any(|behaviour| behaviour.times.is_none()) {
            self.rules.retain(|rule| rule.matcher != matcher);
        }
        if self.rules.len() >= self.rules_max && !self.rules.is_empty() {
            self.rules.remove(0);
        }
        self.rules.push(Rule { matcher, queue });
    }

    pub(crate) fn set_default(&mut self, behaviour: Behaviour) {
        self.default = behaviour;
    }

    pub(crate) fn reset(&mut self) {
        self.rules.clear();
        self.default = default_behaviour();
    }

    /// The behaviour for this request; uses up one of its times.
    pub(crate) fn choose(&mut self, method: &str, target: &str) -> Behaviour {
        for at in (0..self.rules.len()).rev() {
            if !self.rules[at].matcher.matches(method, target) {
                continue;
            }
            let chosen = self.rules[at].take();
            if self.rules[at].queue.is_empty() {
                self.rules.remove(at);
            }
            if let Some(behaviour) = chosen {
                return behaviour;
            }
        }
        self.default.clone()
    }
}

impl Rule {
    fn take(&mut self) -> Option<Behaviour> {
        while let Some(first) = self.queue.front_mut() {
            match &mut first.times {
                None => return Some(first.clone()),
                Some(0) => {}
                Some(left) => {
                    *left -= 1;
                    let (used_up, chosen) = (*left == 0, first.clone());
                    if used_up {
                        self.queue.pop_front();
                    }
                    return Some(chosen);
                }
            }
            self.queue.pop_front();
        }
        None
    }
}

fn default_behaviour() -> Behaviour {
    Behaviour::json(r#"{"ok":true}"#)
}

#[cfg(test)]
mod tests {
    use super::{super::behaviour::Action, Behaviour, Matcher, Rules};

    fn status(rules: &mut Rules, target: &str) -> u16 {
        match rules.choose("GET", target).action {
            Action::Answer(answer) => answer.status,
            other => panic!("no answer: {other:?}"),
        }
    }

    #[test]
    fn limited_behaviours_fall_back_to_the_one_before() {
        let mut rules = Rules::new(16);
        rules.set(Matcher::any(), [Behaviour::status(500)]);
        rules.set(Matcher::path("/a"), [Behaviour::status(503).times(2), Behaviour::status(504).times(1)]);
        let seen: Vec<_> = (0..4).map(|_| status(&mut rules, "/a")).collect();
        assert_eq!(seen, [503, 503, 504, 500]);
        assert_eq!(status(&mut rules, "/b"), 500);
        rules.reset();
        assert_eq!(status(&mut rules, "/a"), 200);
    }

    #[test]
    fn the_last_set_wins_and_the_number_of_rules_is_bounded() {
        let mut rules = Rules::new(2);
        for code in [500, 501, 502] {
            rules.set(Matcher::path(&format!("/{code}")), [Behaviour::status(code)]);
        }
        rules.set(Matcher::path("/502"), [Behaviour::status(418)]);
        assert_eq!(status(&mut rules, "/502"), 418);
        assert_eq!(status(&mut rules, "/500"), 200);
        assert_eq!(rules.rules.len(), 2);
    }

    #[test]
    fn no_times_is_never() {
        let mut rules = Rules::new(2);
        rules.set(Matcher::any(), [Behaviour::status(500).times(0)]);
        assert_eq!(status(&mut rules, "/"), 200);
    }
}
