mod breaker;
mod calls;
mod crowd;
mod forced;
mod generations;
mod opening;
mod probes;
mod property;
mod ramp;
mod rate;
mod reference;
mod simulation;
mod support;

pub(crate) use reference::{Admitted, Begun, Fate, Reference, Seen};
