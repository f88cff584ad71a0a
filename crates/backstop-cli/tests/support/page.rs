//! A page that is composed of a product and recommendations, behind a gateway whose clock stands still until the test moves it.

use std::net::SocketAddr;

use backstop_lab::client::{self, Response};
use backstop_lab::origin::{Behaviour, Origin};
use tokio::task::JoinHandle;

use super::shop::{HOST, SPANISH};
use super::{Gateway, Hand, Policy, expect, product, products};

pub const RECOMMENDED: &str = r#"["7","8"]"#;
pub const LEFT_OUT: &str = "otherwise = { omit = { status = 204 } }";
pub const PARTS: &str = r#"parts = [
    { at = "/product", route = "description", path = "/p/{product}", required = true },
    { at = "/recommendations", route = "recommendations", path = "/p/{product}/recommendations" },
]"#;

/// The shop's descriptions, a recommender, and a page of both.
#[derive(Debug)]
pub struct Page {
    pub catalog: Origin,
    pub recommender: Origin,
    pub gateway: Gateway,
    pub hand: Hand,
}

pub fn policy(catalog: SocketAddr, recommender: SocketAddr) -> Policy {
    Policy::shop(catalog)
        .replace_route("description.public_read", &Policy::description("in_flight = 250"))
        .dependency("recommender", recommender, "connections = 8")
        .route("recommendations.optional", &recommendations(LEFT_OUT))
        .route("page.composed", &page_of(PARTS))
}

pub fn recommendations(otherwise: &str) -> String {
    format!(
        "match = \"GET /p/{{id}}/recommendations\"\ndependency = \"recommender\"\ndeadline = \"80ms\"\nin_flight = 2\n{otherwise}"
    )
}

pub fn page_of(parts: &str) -> String {
    format!(
        "match = \"GET /pages/{{product}}\"\ndeadline = \"300ms\"\nin_flight = 250\nfunction = \"browse\"\n{parts}"
    )
}

/// The page of a product with these recommendations, or without.
pub fn whole(id: &str, language: &str, recommended: Option<&str>) -> String {
    let product = product(id, "first", language);
    match recommended {
        Some(recommended) => format!(r#"{{"product":{product},"recommendations":{recommended}}}"#),
        None => format!(r#"{{"product":{product}}}"#),
    }
}

impl Page {
    pub async fn open() -> Self {
        Self::with(|policy| policy).await
    }

    pub async fn with(change: impl FnOnce(Policy) -> Policy) -> Self {
        let (catalog, recommender) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        catalog.default(products("first"));
        recommender.default(Behaviour::json(RECOMMENDED));
        let mut gateway = Gateway::start(&change(policy(catalog.addr(), recommender.addr())));
        HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        Self { catalog, recommender, gateway, hand }
    }

    pub async fn get(&self, id: &str) -> Response {
        self.gateway.get(&format!("/pages/{id}"), &SPANISH).await
    }

    pub fn asking(&self, target: &'static str) -> JoinHandle<Response> {
        let address = self.gateway.addr;
        tokio::spawn(async move { client::get(address, target, &SPANISH).await.unwrap() })
    }

    /// Requests of one route by what they came to, as `outcome reason`.
    pub async fn counted(&self, route: &str, outcome: &str, reason: &str) -> u64 {
        let labels =
            [format!("route=\"{route}\""), format!("outcome=\"{outcome}\""), format!("reason=\"{reason}\"")];
        let labels = labels.each_ref().map(String::as_str);
        self.gateway.metrics().await.sum("backstop_requests_total", &labels) as u64
    }
}

/// A whole answer that nothing is wrong with.
#[track_caller]
pub fn normal(response: &Response, body: &str) {
    expect::live(response, 200, body);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("content-length"), Some(body.len().to_string().as_str()));
}

/// A whole answer that is less than it should be, and says so.
#[track_caller]
pub fn reduced(response: &Response, body: &str, mark: &str) {
    assert_eq!((response.status(), response.text().as_str()), (200, body), "{:?}", response.head);
    assert!(response.is_complete());
    assert_eq!(response.header("backstop"), Some(mark));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("content-type"), Some("application/json"));
}

pub fn omitted(reason: &str) -> String {
    format!("outcome=fallback, source=omitted, reason={reason}, omitted=(recommendations)")
}
