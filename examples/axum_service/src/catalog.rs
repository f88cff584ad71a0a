//! A catalog that can be broken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

#[derive(Default)]
struct Catalog {
    is_broken: AtomicBool,
    /// How often it was asked while it worked.
    reads: AtomicU32,
}

pub(crate) fn router() -> Router {
    Router::new()
        .route("/products/{id}", get(describe))
        .route("/break", post(async |State(catalog): State<Arc<Catalog>>| catalog.set_broken(true)))
        .route("/heal", post(async |State(catalog): State<Arc<Catalog>>| catalog.set_broken(false)))
        .with_state(Arc::default())
}

impl Catalog {
    fn set_broken(&self, is_broken: bool) -> &'static str {
        self.is_broken.store(is_broken, Ordering::Relaxed);
        if is_broken { "broken\n" } else { "healed\n" }
    }
}

async fn describe(State(catalog): State<Arc<Catalog>>, Path(id): Path<u32>) -> Response {
    if catalog.is_broken.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "the database is down\n").into_response();
    }
    if id > 999 {
        return (StatusCode::NOT_FOUND, "no such product\n").into_response();
    }
    let read = catalog.reads.fetch_add(1, Ordering::Relaxed) + 1;
    Json(json!({ "id": id, "text": format!("product {id}, as described in read {read}") })).into_response()
}
