//! The axis of time: where its ticks stand and what they say.

/// How moments are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clock {
    /// Seconds before now: 0 is now, what has been is negative.
    Ago,
    /// Seconds since something began.
    Elapsed,
    /// The time of day in UTC; 0 is this many seconds after 1970.
    Utc {
        /// Where 0 is.
        zero_unix_s: f64,
    },
}

/// What an axis of time spans, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Its left end.
    pub from_s: f64,
    /// Its right end, after the left one.
    pub to_s: f64,
    /// How moments on it are written.
    pub clock: Clock,
}

/// Distances between ticks that people read easily.
const STEPS_S: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0,
    21600.0, 43200.0, 86400.0, 604_800.0,
];

impl Span {
    /// A span that is not empty: an end that is not after the beginning, or is no number, becomes one second after it.
    #[must_use]
    pub fn new(from_s: f64, to_s: f64, clock: Clock) -> Self {
        let from_s = if from_s.is_finite() { from_s } else { 0.0 };
        let to_s = if to_s.is_finite() && to_s > from_s { to_s } else { from_s + 1.0 };
        Self { from_s, to_s, clock }
    }

    fn zero_s(self) -> f64 {
        match self.clock {
            Clock::Utc { zero_unix_s } => zero_unix_s,
            Clock::Ago | Clock::Elapsed => 0.0,
        }
    }

    /// The distance between ticks: the smallest one that leads to no more than `most`.
    fn step_s(self, most: usize) -> f64 {
        let length = self.to_s - self.from_s;
        let fits = |step: &f64| length / step <= most.max(1) as f64;
        STEPS_S.into_iter().find(fits).unwrap_or(length)
    }

    /// Where ticks stand.
    pub(crate) fn ticks_s(self, most: usize) -> Vec<f64> {
        let (step, zero) = (self.step_s(most), self.zero_s());
        let first = ((self.from_s + zero) / step).ceil() * step - zero;
        (0..=most).map(|tick| first + step * tick as f64).take_while(|at| *at <= self.to_s + 1e-6).collect()
    }

    /// What the tick at `at_s` says.
    pub(crate) fn label(self, at_s: f64, most: usize) -> String {
        match self.clock {
            Clock::Ago if at_s.abs() < 0.5 => "now".to_owned(),
            Clock::Ago if at_s < 0.0 => format!("\u{2212}{}", duration(-at_s)),
            Clock::Ago | Clock::Elapsed => duration(at_s),
            Clock::Utc { zero_unix_s } => {
                let second_of_day = (zero_unix_s + at_s).round().rem_euclid(86_400.0) as u32;
                let (hour, minute, second) =
                    (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
                if self.step_s(most) < 60.0 {
                    format!("{hour:02}:{minute:02}:{second:02}")
                } else {
                    format!("{hour:02}:{minute:02}")
                }
            }
        }
    }

    /// The axis's own name, with its unit.
    pub(crate) const fn caption(self) -> &'static str {
        match self.clock {
            Clock::Ago => "time before now",
            Clock::Elapsed => "time since the beginning",
            Clock::Utc { .. } => "time of day, UTC",
        }
    }
}

/// A length of time in the two largest units that it needs.
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, rest) => format!("{rest} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Span};

    fn labels(span: Span, most: usize) -> Vec<String> {
        span.ticks_s(most).into_iter().map(|at| span.label(at, most)).collect()
    }

    #[test]
    fn ticks_stand_at_round_moments() {
        assert_eq!(labels(Span::new(-300.0, 0.0, Clock::Ago), 3), ["\u{2212}4 min", "\u{2212}2 min", "now"]);
        assert_eq!(labels(Span::new(0.0, 90.0, Clock::Elapsed), 3), ["0 s", "30 s", "1 min", "1 min 30 s"]);
        // 50 000 s after midnight is 13:53:20: the first whole minute after it is 13:54.
        let span = Span::new(0.0, 150.0, Clock::Utc { zero_unix_s: 86_400.0 + 50_000.0 });
        assert_eq!(labels(span, 3), ["13:54", "13:55"]);
        let span = Span::new(0.0, 30.0, Clock::Utc { zero_unix_s: 50_000.0 });
        assert_eq!(labels(span, 2), ["13:53:30", "13:53:45"]);
    }

    #[test]
    fn a_span_is_never_empty_and_never_without_numbers() {
        assert_eq!(Span::new(5.0, 5.0, Clock::Elapsed), Span::new(5.0, 6.0, Clock::Elapsed));
        assert_eq!(Span::new(f64::NAN, f64::INFINITY, Clock::Ago), Span::new(0.0, 1.0, Clock::Ago));
    }
}
