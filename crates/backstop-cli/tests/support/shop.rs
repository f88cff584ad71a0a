//! A shop behind a gateway whose clock stands still until the test moves it.

use std::net::SocketAddr;
use std::time::Duration;

use backstop_lab::client::{Connection, Response};
use backstop_lab::origin::{Answer, Behaviour, Gate, Origin, Request};

use super::{BOUND, Gateway, Hand, Policy};

/// The host of all requests. Copies are kept by it, so it is the same before and after a restart.
pub const HOST: &str = "shop.example";
/// Spanish for tenant `a`: what most tests ask for.
pub const SPANISH: [(&str, &str); 3] = [("Accept-Language", "es"), ("X-Tenant", "a"), ("Host", HOST)];
/// The head of a GET of product 1 with these fields, for clients that leave before the answer.
pub const GET_PRODUCT_1: &[u8] =
    b"GET /p/1 HTTP/1.1\r\nHost: shop.example\r\nAccept-Language: es\r\nX-Tenant: a\r\n\r\n";

/// The body that is right for a product in a language.
pub fn product(id: &str, text: &str, language: &str) -> String {
    format!(r#"{{"id":"{id}","text":"{text}","lang":"{language}"}}"#)
}

/// Every product, in the language that is asked for, with this text.
pub fn products(text: &str) -> Behaviour {
    let text = text.to_owned();
    Behaviour::from_fn(move |request| right_answer(request, &text))
}

/// The right answer to a request for a product.
pub fn right_answer(request: &Request, text: &str) -> Answer {
    let id = request.path().rsplit('/').next().unwrap_or_default();
    Answer::json(product(id, text, request.header("accept-language").unwrap_or("none")))
}

/// An origin, the gateway in front of it, and the hand on the gateway's clock, which stands still.
#[derive(Debug)]
pub struct Shop {
    pub origin: Origin,
    pub gateway: Gateway,
    pub hand: Hand,
}

impl Shop {
    /// The shop of [`Policy::shop`]; every product has the text `first`.
    pub async fn open() -> Self {
        Self::with(Policy::shop).await
    }

    /// The shop with another policy.
    pub async fn with(policy: impl FnOnce(SocketAddr) -> Policy) -> Self {
        let origin = Origin::start().await.expect("an origin");
        origin.default(products("first"));
        let mut gateway = Gateway::start(&policy(origin.addr()));
        HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        Self { origin, gateway, hand }
    }

    /// A product in Spanish for tenant `a`.
    pub async fn get(&self, id: &str) -> Response {
        self.gateway.get(&format!("/p/{id}"), &SPANISH).await
    }

    /// Time goes by.
    pub fn pass(&mut self, seconds: f64) {
        self.hand.advance(Duration::from_secs_f64(seconds));
    }

    /// A client asks for product 1 and leaves while the origin works on it, as the `at_work`th call behind the gate.
    pub async fn client_leaves(&self, gate: &Gate, at_work: usize) {
        let mut client = Connection::open(self.gateway.addr).await.expect("a connection");
        client.send(GET_PRODUCT_1).await.expect("a request");
        gate.wait_for_waiting(at_work, BOUND).await.expect("the origin is asked");
        client.reset().expect("a client that leaves");
    }

    /// The origin refuses connections, and those that were open are gone.
    pub async fn goes_down(&self) {
        down(&self.origin).await;
    }

    /// The origin answers every request with 503.
    pub fn is_unavailable(&self) {
        self.origin.on(backstop_lab::origin::Matcher::any(), Behaviour::status(503));
    }

    /// Waits until at least so many copies have been written to disk in this life of the gateway.
    pub async fn written(&self, copies: u64) {
        written(&self.gateway, copies).await;
    }
}

/// An origin that refuses connections, with none left open.
pub async fn down(origin: &Origin) {
    origin.refuse().await.expect("the origin can refuse");
    origin.close_connections();
    origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.expect("connections end");
}

/// Makes the copies that have been written survive `kill -9`: a withdrawal is answered when the disk has confirmed it, and
/// with it everything before. The gateway's clock stands still, so nothing ends that wait.
pub async fn durable(gateway: &Gateway, copies: u64) {
    gateway.get("/p/withdrawn", &SPANISH).await;
    written(gateway, copies + 1).await;
    assert_eq!(gateway.request("PUT", "/p/withdrawn", &[("Host", HOST)], b"{}").await.status(), 200);
}

/// Waits until at least so many copies have been written to disk in this life of the gateway.
pub async fn written(gateway: &Gateway, copies: u64) {
    let done = |metrics: &super::Metrics| {
        metrics.sum("backstop_store_writes_total", &[]) >= copies as f64
            && metrics.sum("backstop_store_writes_queued", &[]) == 0.0
    };
    gateway.metrics_until(done).await;
}
