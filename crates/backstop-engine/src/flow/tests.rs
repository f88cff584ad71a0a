//! What a flow decides, in virtual time.
//!
//! | file | what it holds |
//! |---|---|
//! | `support` | a small engine, moments, and a driver that answers every step from a script |
//! | `reference` | the contract once more, as one naive function |
//! | `contract` | the contract's own sentences, each with its values written out |
//! | `table` | every class, failure, status, copy and method against the reference |
//! | `authorize` | whether the caller may, before anything else |
//! | `cached` | reads through a shared cache |
//! | `evidence`, `lane`, `queue`, `not_begun`, `operation`, `late`, `parts`, `settlement`, `stand_ins`, `time`, `trace` | one subject each |
//! | `naive`, `request`, `model`, `ends`, `requests`, `worlds`, `world`, `checks`, `property` | many flows at once against plain counters |
//! | `crowd` | thousands of flows that are cancelled or panic |
//! | `faults` | faults that were found and repaired, one kind each |

mod authorize;
mod cached;
mod checks;
mod contract;
mod crowd;
mod ends;
mod evidence;
mod faults;
mod lane;
mod late;
mod model;
mod naive;
mod not_begun;
mod operation;
mod parts;
mod property;
mod queue;
mod reference;
mod request;
mod requests;
mod settlement;
mod stand_ins;
mod support;
mod table;
mod time;
mod trace;
mod world;
mod worlds;
