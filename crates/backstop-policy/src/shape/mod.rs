//! The tables of the policy file, as they are written.
//!
//! One struct per table and one table per route class, so that a mix that would be unsafe has no key to be written
//! with. The doc comments are the reference.

mod authorizer;
mod breaker;
mod cache;
mod check;
mod composed;
mod cors;
mod dependency;
mod drill;
mod effect;
mod evidence;
mod file;
mod gateway;
mod prepared;
mod resource;
mod route;
mod second;
mod store;
mod telemetry;
mod verify;

pub(crate) use authorizer::{AuthorizerTable, JwtTable};
pub(crate) use breaker::{BreakerTable, GreenTable, ProbeTable, RecoveryTable, RedTable};
pub(crate) use cache::{CacheTable, FillTable, LocalCopyTable};
pub(crate) use check::{CheckTable, WaiverTable};
pub(crate) use composed::{ComposedRoute, ComposedTable, PartTable};
pub(crate) use cors::CorsTable;
pub(crate) use dependency::DependencyTable;
pub(crate) use drill::{DrillExpectTable, DrillFaultTable, DrillLoadTable, DrillTable};
pub(crate) use effect::EffectTable;
pub(crate) use evidence::EvidenceTable;
pub(crate) use file::{File, RouteEntry, RouteTable};
pub(crate) use gateway::{GatewayTable, LimitsTable, RouteLimitsTable};
pub(crate) use prepared::{Prepared, Whom};
pub(crate) use resource::ResourceTable;
pub(crate) use route::{
    CachedReadTable, Common, CorrectTable, DirectTable, GuardedTable, HeaderEditsTable, KeptTable, OmitTable,
    OptionalTable, OtherwiseTable, PublicReadTable,
};
pub(crate) use second::{AlternativeTable, RetryTable};
pub(crate) use store::StoreTable;
pub(crate) use telemetry::{AccessLogTable, TelemetryTable};
pub(crate) use verify::{
    AbsenceTable, AnswerTable, ListTable, OutcomeTable, RefusedTable, StatusQueryTable, VerifyTable,
};
