//! Backstop's policy file: from text to the engine's policy, or to diagnostics with line and column.
//!
//! The way of a file:
//! 1. `toml` parses it once, with a span for every key and value, and goes on after syntax errors.
//! 2. The tables read themselves: unknown keys, wrong types, bad units and impossible
//!    values are reported, each with a code, a place and what to do.
//! 3. Checks compare values with each other: references, overlapping matches, phases longer than a deadline; lints
//!    point at what is allowed but probably not wanted.
//! 4. Only a file without any error is lowered to the engine's types. Otherwise the whole file is refused.
//!
//! ```
//! let text = r#"
//!     [gateway]
//!     listen    = "127.0.0.1:8080"
//!     in_flight = 1000
//!
//!     [dependency.catalog]
//!     url = "http://127.0.0.1:9001"
//!
//!     [route.products.direct]
//!     match      = "GET /products/{product}"
//!     dependency = "catalog"
//!     dedline    = "300ms"
//!     in_flight  = 200
//! "#;
//! let diagnostics = backstop_policy::parse(text, "shop.toml", &backstop_policy::NoFiles).unwrap_err();
//! let shown = backstop_policy::render_human(&diagnostics, text, false);
//! assert!(shown.contains("unknown key `route.products.direct.dedline`"));
//! assert!(shown.contains("did you mean `deadline`?"));
//! ```

mod check;
mod code;
mod default;
mod diagnostic;
mod digest;
mod drill;
mod lines;
mod load;
mod lower;
mod read;
mod reference;
mod render;
mod rest;
mod settings;
mod shape;
mod source;
mod suggest;
mod syntax;
mod value;
mod waiver;

pub use code::{Code, Severity};
pub use diagnostic::{Counts, Diagnostic, Fix, Place, Related};
pub use drill::{DrillExpect, DrillFault, DrillFaultKind, DrillLoad, DrillSettings, load_drill, parse_drill};
pub use lines::Position;
pub use load::{Loaded, Refused, Waived, load, parse};
pub use reference::{drill_page, json_schema, reference_page};
pub use render::{render_human, render_json};
pub use settings::{
    AccessFormat, AccessLogSettings, Address, AskedSettings, AuthorizerKind, AuthorizerSettings,
    CacheSettings, CorsSettings, DependencySettings, EvidenceSettings, GatewaySettings, HeaderEdits,
    HostHeader, HostPattern, IpRange, Ledger, Limits, MatchRule, Method, PartSettings, ProbeSettings,
    RouteLimits, RouteSettings, Segment, StoreSettings, Template, TokenAlgorithm, TokenSettings,
    TraceSettings, WebhookSettings,
};
pub use source::{Disk, FileSource, NoFiles, Source, SourceMap};
pub use suggest::closest;
pub use value::duration;
