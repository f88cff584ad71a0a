//! When a dependency is left alone, and how its load returns.

mod rules;

pub use rules::{Band, BreakerRules, PerMille, RecoveryRules};
