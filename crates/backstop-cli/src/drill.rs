//! Drills, bound to the real gateway: the lab plays them, and this starts what they are played against.

mod choice;
mod stage;
mod table;
mod watch;

pub(crate) use choice::{Chosen, choose};
pub(crate) use stage::InProcess;
pub(crate) use table::{list, table};
pub(crate) use watch::Watch;
