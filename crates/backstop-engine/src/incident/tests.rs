//! Incidents second by second, in virtual time.

mod begin;
mod end;
mod phases;
mod property;
mod record;
mod reference;
mod restart;
mod signals;
mod support;
mod timeline;
