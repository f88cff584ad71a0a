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
