//! A small shop, as behaviours on an [`Origin`]: what examples and demonstrations talk to.
//!
//! * `GET /products/{id}`: `{"id":"42","text":"Product 42","lang":"en"}`. The language is the first of
//!   `Accept-Language`, of [`LANGUAGES`], else English; `Content-Language` and `Vary: Accept-Language` say so.
//! * `GET /products/{id}/recommendations`: a JSON array of three product ids.
//! * `PUT /products/{id}`: 204.
//! * Anything else: 404.

use serde_json::{Value, json};

use crate::origin::{Answer, Behaviour, Origin, Request};

/// The languages the shop speaks.
pub const LANGUAGES: [&str; 3] = ["en", "es", "de"];

/// Makes `origin` a shop. Rules set on it earlier or later still come first.
pub fn open(origin: &Origin) {
    origin.default(behaviour());
}

/// The shop's behaviour, to be set where it is wanted.
#[must_use]
pub fn behaviour() -> Behaviour {
    Behaviour::from_fn(serve)
}

fn serve(request: &Request) -> Answer {
    let path: Vec<&str> = request.path().trim_start_matches('/').split('/').collect();
    match (request.method.as_str(), path.as_slice()) {
        ("GET" | "HEAD", ["products", id]) => product(id, language(request)),
        ("GET" | "HEAD", ["products", id, "recommendations"]) => recommendations(id),
        ("PUT", ["products", _]) => Answer::new(204),
        _ => json_answer(404, &json!({"error": "not found"})),
    }
}

fn product(id: &str, language: &str) -> Answer {
    let text = match language {
        "es" => format!("Producto {id}"),
        "de" => format!("Produkt {id}"),
        _ => format!("Product {id}"),
    };
    json_answer(200, &json!({"id": id, "text": text, "lang": language}))
        .header("Content-Language", language)
        .header("Vary", "Accept-Language")
}

fn recommendations(id: &str) -> Answer {
    let base: u64 = id.bytes().map(u64::from).sum();
    let ids: Vec<String> = (1..=3).map(|step| (base + step).to_string()).collect();
    json_answer(200, &json!(ids))
}

fn json_answer(status: u16, body: &Value) -> Answer {
    Answer::new(status).header("Content-Type", "application/json").body(body.to_string())
}

fn language(request: &Request) -> &'static str {
    let wanted = request.header("accept-language").unwrap_or_default();
    let first = wanted.split([',', ';', '-']).next().unwrap_or_default().trim();
    LANGUAGES.into_iter().find(|known| known.eq_ignore_ascii_case(first)).unwrap_or(LANGUAGES[0])
}
