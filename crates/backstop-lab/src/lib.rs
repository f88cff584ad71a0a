//! What a test or a drill needs around a gateway, at byte level.
//!
//! * [`drill`]: rehearses a policy's failures against a gateway, and holds its promises against what clients got.
//! * [`origin`]: an HTTP/1.1 origin that can be told to fail in every way a real one fails, while it runs, and
//!   that keeps an exact record of what reached it.
//! * [`client`]: a raw client that sends any bytes and reads answers strictly: it never takes a cut body for a
//!   short one.
//! * [`load`]: an open-loop load generator. It measures from the moment a request *should* have been sent, so a
//!   stalled target cannot hide its own stall.
//! * [`cache`]: a shared cache that speaks as much of Redis's protocol as a cache's clients do.
//! * [`database`]: a model of a database that bears only so much, and is cold after an outage.
//! * [`plain`]: a plain reverse proxy with usual defaults, to compare with.
//! * [`payments`]: a payment service that executes whatever it receives, and the oracle that holds what clients were told
//!   against what happened.
//! * [`proxy`]: stands between a gateway and what it depends on, fails on demand, and counts what came.
//! * [`shop`]: the small shop API that examples and demonstrations talk to.
//!
//! Nothing here is built on an HTTP library: a library repairs what it writes and what it reads, and the faults
//! worth testing are exactly those that a library would repair.

pub mod cache;
pub mod client;
pub mod clock;
pub mod database;
pub mod drill;
pub mod load;
pub mod origin;
pub mod payments;
pub mod plain;
pub mod proxy;
pub mod shop;
pub mod wire;
