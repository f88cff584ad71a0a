//! How the gateway stands: one model, and everything that shows it.
//!
//! - [`View`] is the model. `GET /status.json` is it, written down; the page and `backstop status` show nothing else.
//! - The board looks at the counters once a second, by the gateway's clock, and remembers a minute, an hour, and since when.
//! - The page is HTML from here: whole without JavaScript, and renewed in place with it. Nothing is loaded from elsewhere.
//!
//! What is shown is what was counted. Nothing here decides anything, and no request waits for it.

mod board;
mod build;
mod counted;
mod curves;
mod history;
mod incident;
mod ladder;
mod minute;
mod page;
mod report;
mod sentence;
mod standing;
mod view;
mod words;

pub(crate) use board::Board;
pub(crate) use page::{POLICY, SCRIPT, STYLE};
pub(crate) use report::{POLICY as REPORT_POLICY, report};
pub use view::{
    AuthorizerView, CacheView, CopyAgesView, DependencyHistory, DependencyStanding, DependencyView, FORMAT,
    FunctionHistory, FunctionView, GatewayView, HeldView, HistoryView, InFlight, IncidentView,
    OperationsView, Outcomes, Overall, ResourceView, RouteState, RouteView, Rung, RungKind, StoreView, View,
};

use crate::admin::Admin;
use crate::incidents;

/// An incident that was read from its file: the gateway that wrote it may be gone.
#[derive(Clone, Debug)]
pub struct Told {
    /// The report, as `GET /incidents/ID.html` answers it.
    pub html: String,
    /// The same in a few lines.
    pub summary: String,
}

/// A file that is none of an incident.
#[derive(Debug, thiserror::Error)]
pub enum NoIncident {
    /// It holds something else.
    #[error("it is no incident: {0}")]
    Damaged(String),
    /// The report cannot be written.
    #[error("the report cannot be written")]
    Report(#[from] askama::Error),
}

/// Tells what a file of an incident holds.
///
/// # Errors
/// If it holds something else.
pub fn tell(file: &str, gateway: &str) -> Result<Told, NoIncident> {
    let (record, counted_until) = incidents::parse(file).map_err(NoIncident::Damaged)?;
    Ok(Told {
        html: report::report(gateway, &record, &counted_until)?,
        summary: report::summary(&record, &counted_until),
    })
}

/// The model now.
pub(crate) fn view(admin: &Admin) -> View {
    let now = admin.backstop.clock().now();
    let board = &admin.state.board;
    build::view(admin, board, &board.read(now), now)
}

/// The page now.
pub(crate) fn page(admin: &Admin) -> Result<String, askama::Error> {
    let now = admin.backstop.clock().now();
    let board = &admin.state.board;
    let reading = board.read(now);
    let view = build::view(admin, board, &reading, now);
    page::render(&view, &curves::curves(board, &reading, &view))
}
