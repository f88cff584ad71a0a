//! What a flow decides, in virtual time.
//!
//! | file | what it holds |
//! |---|---|
//! | `support` | a small engine, moments, and a driver that answers every step from a script |
//! | `reference` | the contract once more, as one naive function |
//! | `contract` | the contract's own sentences, each with its values written out |
//! | `table` | every class, failure, status, copy and method against the reference |
//! | `cached` | reads through a shared cache |
//! | `evidence`, `lane`, `queue`, `not_begun`, `late`, `parts`, `settlement`, `time`, `trace` | one subject each |
//! | `model`, `requests`, `property` | many flows at once against plain counters |
//! | `crowd` | thousands of flows that are cancelled or panic |
//! | `faults` | faults that were found and repaired, one kind each |

mod cached;
mod contract;
mod crowd;
mod evidence;
mod faults;
mod lane;
mod late;
mod model;
mod not_begun;
mod parts;
mod property;
mod queue;
mod reference;
mod requests;
mod settlement;
mod support;
mod table;
mod time;
mod trace;
