//! The tables of the policy file, as they are written.
//!
//! One struct per table and one table per route class, so that a mix that would be unsafe has no key to be written
//! with. The doc comments are the reference.

mod check;
mod dependency;
mod file;
mod gateway;
mod route;
mod store;

pub(crate) use check::{CheckTable, WaiverTable};
pub(crate) use dependency::DependencyTable;
pub(crate) use file::{File, RouteEntry, RouteTable};
pub(crate) use gateway::{GatewayTable, LimitsTable, RouteLimitsTable};
pub(crate) use route::{
    Common, CorrectTable, DirectTable, HeaderEditsTable, OmitTable, OptionalTable, OtherwiseTable,
    PublicReadTable,
};
pub(crate) use store::StoreTable;
