//! The operators' port: metrics, and whether the process lives and is ready.
//!
//! - `GET /`, `GET /status`: how everything stands, for people; `GET /status.json` the same for programs.
//! - `GET /metrics`: OpenMetrics text, which Prometheus reads.
//! - `GET /livez`: 200 while the process serves its own port.
//! - `GET /readyz`: 200 while requests are accepted, 503 once the service stops. Its JSON names what is wrong without being
//!   a reason to take traffic away: a disk that costs copies or records, withdrawals that the disk has not confirmed, a
//!   clock by which no evidence can be judged, a ledger that takes no new operations.
//! - `GET /incidents`, `GET /incidents/ID`: what happened, as JSON; `GET /incidents/ID.html` as a report.
//! - `/operations`: what is known of operations that must happen once, and a person's decision.
//! - `GET /dependencies/NAME/breaker` shows what holds a breaker; `POST` is an operator's order.

mod breaker;
mod content;
mod operations;
mod own;
mod shown;
mod visitors;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use backstop::Backstop;
use backstop_engine::engine::DependencyState;
use backstop_engine::time::WallTrust;
use backstop_store::ledger::LedgerStanding;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use self::operations::Desk;
use self::visitors::{Seat, Visitors};
use crate::caches::Caches;
use crate::client_body::RequestContent;
use crate::disk;
use crate::metrics;
use crate::operations::Operations;
use crate::reconciler;
use crate::stack::Shared;
use crate::state::State;
use crate::upstream::Pool;

/// Everything that the operators' port shows.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) backstop: Backstop,
    pub(crate) shared: Arc<Shared>,
    pub(crate) pools: Vec<Pool<RequestContent>>,
    pub(crate) caches: Caches,
    pub(crate) state: State,
    pub(crate) operations: Option<Arc<Operations>>,
    /// What the reconciler counts, where there is one.
    pub(crate) reconciler: Option<Arc<reconciler::Counts>>,
}

/// A scraper that takes longer for its request than this is cut off.
const HEAD_TIME: Duration = Duration::from_secs(5);

impl Admin {
    pub(crate) fn new(
        backstop: Backstop,
        shared: Arc<Shared>,
        pools: Vec<Pool<RequestContent>>,
        caches: Caches,
        state: State,
        operations: Option<Arc<Operations>>,
        reconciler: Option<Arc<reconciler::Counts>>,
    ) -> Self {
        Self { backstop, shared, pools, caches, state, operations, reconciler }
    }

    pub(crate) async fn serve(self, listener: TcpListener) {
        let visitors = Visitors::new(HEAD_TIME);
        for number in 0_u64.. {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let seat = visitors.seat(number, Instant::now());
            let task = tokio::spawn(self.clone().converse(stream, seat));
            visitors.runs_as(number, task.abort_handle());
        }
    }

    async fn converse(self, stream: TcpStream, seat: Seat) {
        let service = service_fn(|request: Request<Incoming>| {
            seat.asks(Instant::now());
            let admin = &self;
            async move { Ok::<_, Infallible>(admin.answer(request).await) }
        });
        let _scraper_left = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        if let Some(place) = operations::place(&path) {
            let ledger = self.operations.as_ref().map(|operations| &*operations.ledger);
            return Desk::new(ledger, self.backstop.clock().clone()).answer(place, request).await;
        }
        match breaker::named(&path) {
            Some(name) => breaker::answer(self, name, request).await,
            None => match shown::answer(self, &request) {
                Some(response) => response,
                None => self.show(request.method(), &path),
            },
        }
    }

    fn show(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut response =
                text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n".into());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match path {
            "/metrics" => match metrics::encode(self) {
                Ok(metrics) => typed(StatusCode::OK, metrics::MEDIA_TYPE, metrics),
                Err(error) => {
                    text(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot encode metrics: {error}\n"))
                }
            },
            "/livez" => text(StatusCode::OK, "alive\n".into()),
            "/readyz" => self.readiness(),
            "/incidents" => json(StatusCode::OK, &self.state.book.list()),
            _ => match path.strip_prefix("/incidents/") {
                Some(id) => self.incident(id),
                None => text(
                    StatusCode::NOT_FOUND,
                    "there are /status, /status.json, /metrics, /livez, /readyz, /incidents, /operations and \
                     /dependencies/NAME/breaker\n"
                        .into(),
                ),
            },
        }
    }

    fn incident(&self, id: &str) -> Response<Full<Bytes>> {
        match self.state.book.one(id) {
            Some(record) => json(StatusCode::OK, &record),
            None => {
                json(StatusCode::NOT_FOUND, &json!({ "error": "there is no such incident, or not any more" }))
            }
        }
    }

    /// What is wrong without being a reason to take traffic away.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        let health = self.backstop.copies().health();
        if let Some((word, error)) = disk::trouble(&health.disk) {
            warnings.push(format!("copies are kept in memory only: the disk is {word} ({error})"));
        }
        if health.withdrawals_unconfirmed > 0 {
            warnings.push(format!(
                "{} withdrawals are not confirmed by the disk",
                health.withdrawals_unconfirmed
            ));
        }
        if let Some(error) = self.state.keeper.as_ref().and_then(|keeper| keeper.trouble()) {
            warnings.push(format!("incidents and the states of breakers are kept in memory only ({error})"));
        }
        if let Some(operations) = &self.operations {
            warnings.extend(ledger_warning(&operations.ledger.standing(self.backstop.clock().now())));
        }
        let engine = self.backstop.engine();
        let is_believed = self.backstop.clock().now().wall_trust == WallTrust::Synchronised;
        let has_evidence = |dependency: &DependencyState| dependency.stand_in.verified().is_some();
        if !is_believed && engine.dependencies().iter().any(has_evidence) {
            warnings.push(
                "nobody stands in for another: the clock is not synchronised, so no evidence can be dated"
                    .into(),
            );
        }
        warnings
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let (warnings, draining) = (self.warnings(), self.backstop.engine().is_draining());
        let status = if draining { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        let body = serde_json::json!({ "ready": !draining, "draining": draining, "warnings": warnings });
        typed(status, "application/json", format!("{body}\n"))
    }
}

/// Why new operations are refused, if they are.
fn ledger_warning(standing: &LedgerStanding) -> Option<String> {
    match &standing.failed {
        Some(error) => Some(format!(
            "operations are refused: their ledger ended ({error}), and a start reads what is really on its disk"
        )),
        None if standing.is_full => Some(
            "new operations are refused: the disk of their ledger is full; outcomes are still written".into(),
        ),
        None => None,
    }
}

fn json(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    typed(status, "application/json", format!("{body:#}\n"))
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, media_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
