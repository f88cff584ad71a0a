//! The page's small server: the page, its style and script, its model, and the buttons.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Form, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use backstop_chart::COLOURS;
use serde::Deserialize;

use super::button::Button;
use super::world::World;
use super::{POLICY, own, view};

/// What a browser may do with the page.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                              form-action 'self'; frame-ancestors 'none'";
const STYLE: &str = include_str!("../../../templates/demo.css");
const SCRIPT: &str = include_str!("../../../templates/demo.js");
/// A form of two short fields.
const FORM_BYTES_MAX: usize = 1024;

#[derive(Clone)]
struct Page {
    world: Arc<World>,
    address: SocketAddr,
}

#[derive(Deserialize)]
struct Pressed {
    button: String,
    #[serde(default)]
    broken: bool,
}

/// The application that serves a world at an address.
pub(super) fn app(world: Arc<World>, address: SocketAddr) -> Router {
    let page = Page { world, address };
    Router::new()
        .route("/", get(show))
        .route("/state.json", get(async |State(page): State<Page>| Json(page.world.state())))
        .route("/press", post(press))
        .route("/demo.toml", get(async || typed("text/plain; charset=utf-8", POLICY.to_owned())))
        .route("/demo.css", get(async || typed("text/css; charset=utf-8", format!("{COLOURS}\n{STYLE}"))))
        .route("/demo.js", get(async || typed("text/javascript; charset=utf-8", SCRIPT.to_owned())))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(middleware::from_fn_with_state(page.clone(), guard))
        .with_state(page)
}

async fn show(State(page): State<Page>) -> Response {
    match view::render(&page.world) {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the page: {error}\n")).into_response()
        }
    }
}

async fn press(State(page): State<Page>, headers: HeaderMap, Form(pressed): Form<Pressed>) -> Response {
    if !own::may_press(&headers, page.address) {
        return (StatusCode::FORBIDDEN, "only the demo's own page presses its buttons\n").into_response();
    }
    let Some(button) = Button::of(&pressed.button) else {
        return (StatusCode::NOT_FOUND, "there is no such button\n").into_response();
    };
    match page.world.press(button, pressed.broken).await {
        Ok(()) => Redirect::to("/").into_response(),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("it did not work: {error}\n")).into_response()
        }
    }
}

fn typed(kind: &'static str, text: String) -> impl IntoResponse {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text)
}

/// Nothing is shown under a foreign name, and browsers are told to load nothing and to let nobody frame it.
async fn guard(State(page): State<Page>, request: Request, next: Next) -> Response {
    if !own::is_called_by_its_name(request.headers(), page.address) {
        let why = "this page is shown under its address or as localhost: other names can be made to lead here by anybody\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let mut response = next.run(request).await;
    let fields: [(HeaderName, &str); 5] = [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`: browsers would then send a form's `Origin` as `null`.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fields {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
