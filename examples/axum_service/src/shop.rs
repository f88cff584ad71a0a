//! The shop: each page needs a description from the catalog, and a description of the last minute is good enough.

use std::error::Error as _;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use backstop::clock::Clock;
use backstop::engine::failure::FailureKind;
use backstop::engine::flow::Account;
use backstop::engine::policy::Correct;
use backstop::{Backstop, BackstopLayer, BackstopService, builder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tower::{Layer, ServiceExt};

type HttpClient = Client<HttpConnector, Body>;
type ClientError = hyper_util::client::legacy::Error;

/// The catalog as handlers see it: a tower service, cheap to clone.
#[derive(Clone)]
struct Catalog {
    url: String,
    protected: BackstopService<HttpClient, fn(&ClientError) -> Option<FailureKind>>,
}

pub(crate) fn router(catalog_url: &str) -> Result<Router, crate::Error> {
    // What was agreed beforehand: an answer within 300 ms, at most 100 requests at once, and, while the catalog is
    // unavailable for more than a moment, the last correct description if it is no older than a minute.
    let policy = builder::public_read("description", Duration::from_millis(300))
        .in_flight(100)
        .max_age(Duration::from_secs(60))
        .retry()
        .correct(Correct {
            media_type: Some("application/json".into()),
            has: vec!["/id".into(), "/text".into()],
            echo: vec![],
        })
        .policy();
    let backstop = Backstop::in_memory(policy, Clock::system()?, 64 << 20)?;

    // One owner of retries, the policy: the client must not send again what it was given once.
    let client: HttpClient =
        Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
    let layer = BackstopLayer::new(backstop.route("description")?, classify as fn(&ClientError) -> _);
    let catalog = Catalog { url: catalog_url.to_owned(), protected: layer.layer(client) };
    Ok(Router::new().route("/products/{id}", get(product)).with_state(catalog))
}

/// Which of the client's errors mean that the catalog is unavailable. Only those may be answered with an earlier
/// description; every other error reaches the handler as it is.
fn classify(error: &ClientError) -> Option<FailureKind> {
    if error.is_connect() {
        return Some(FailureKind::Connect);
    }
    let cause = error.source()?.downcast_ref::<hyper::Error>()?;
    if cause.is_parse() {
        Some(FailureKind::Protocol)
    } else if cause.is_incomplete_message() || cause.is_closed() || cause.is_canceled() {
        Some(FailureKind::Reset)
    } else {
        None
    }
}

async fn product(State(catalog): State<Catalog>, Path(id): Path<u32>) -> Response {
    match show(catalog, id).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error}\n")).into_response(),
    }
}

async fn show(catalog: Catalog, id: u32) -> Result<Response, crate::Error> {
    let url: Uri = format!("{}/products/{id}", catalog.url).parse()?;
    let request = Request::get(url).body(Body::empty())?;
    let (head, body) = catalog.protected.oneshot(request).await?.into_parts();
    let body = Body::new(body);
    if head.status != StatusCode::OK {
        // 404 and the like in the catalog's own words, or a refusal as problem details. Both are honest answers.
        return Ok(Response::from_parts(head, body));
    }

    // What is not normal says what it is: an alternative has a source and an age, a correct answer neither.
    let account = head.extensions.get::<Account>();
    let source = account.map_or("primary", |account| account.source.token());
    let age = account.and_then(|account| account.age).unwrap_or_default();
    let description: Value = serde_json::from_slice(&axum::body::to_bytes(body, 1 << 20).await?)?;
    let page = json!({
        "text": description["text"],
        "price": "ask at the counter",
        "source": source,
        "age_seconds": age.as_secs(),
    });
    let mut response = Json(page).into_response();
    // Whoever caches this page must know that it is not new.
    for name in ["backstop", "age"] {
        if let Some(value) = head.headers.get(name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}
