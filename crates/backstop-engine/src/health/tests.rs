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
mod signals;
mod simulation;
mod support;
mod told;

pub(crate) use reference::Reference;
pub(crate) use told::{Admitted, Begun, Fate, Seen};
