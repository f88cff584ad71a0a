//! A bank behind an `effect` route: what clients hear of payments, and what the bank received.

use std::net::SocketAddr;

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Origin};

use super::{Gateway, Hand, Policy};

pub const PAY: &str = "/payments";
/// What everybody here sends, beside a key.
pub const ANA: [(&str, &str); 2] = [("Content-Type", "application/json"), ("X-Tenant", "ana")];
/// What a payment looks like.
pub const TEN: &[u8] = br#"{"amount":10,"to":"shop"}"#;

/// The contract with the bank, without a way to ask for a status.
pub const CONTRACT: &str = "outcome = { succeeded = [{ status = [200, 201], json = { \"/status\" = [\"paid\"] } }], pending = [{ status = 202 }], refused = [{ status = [402, 422] }] }";

/// An origin, the gateway in front of it, and the hand on the gateway's clock, which stands still.
#[derive(Debug)]
pub struct Bank {
    pub origin: Origin,
    pub gateway: Gateway,
    pub hand: Hand,
}

/// `POST /payments` with 2 s, told apart by `X-Tenant`; `more` are further lines of the route.
pub fn policy(origin: SocketAddr, more: &str) -> Policy {
    let lines = [
        "match = \"POST /payments\"",
        "dependency = \"bank\"",
        "deadline = \"2s\"",
        "in_flight = 60",
        "scope = \"header.x-tenant\"",
        CONTRACT,
    ];
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let replaced: Vec<String> = more.lines().map(key).collect();
    let kept = lines.into_iter().filter(|line| !replaced.contains(&key(line)));
    let set = more.lines().filter(|line| !line.trim_end().ends_with('='));
    Policy::empty()
        .gateway("trusted = [\"127.0.0.0/8\"]")
        .dependency("bank", origin, "connections = 64")
        .route("pay.effect", &kept.chain(set).collect::<Vec<_>>().join("\n"))
}

/// Paid, with fields that must not be kept among those that may.
pub fn paid() -> Answer {
    Answer::new(201)
        .header("Content-Type", "application/json")
        .header("Location", "/payments/p-1")
        .header("Set-Cookie", "session=secret")
        .body("{\"status\": \"paid\", \"id\": \"p-1\"}")
}

impl Bank {
    /// Pays whatever is asked.
    pub async fn open() -> Self {
        Self::with("").await
    }

    /// With further lines of the route.
    pub async fn with(more: &str) -> Self {
        Self::of(|origin| policy(origin, more)).await
    }

    pub async fn of(policy: impl FnOnce(SocketAddr) -> Policy) -> Self {
        let origin = Origin::start().await.expect("an origin");
        origin.default(paid());
        let gateway = Gateway::start(&policy(origin.addr()));
        let mut hand = gateway.hand();
        hand.freeze();
        Self { origin, gateway, hand }
    }

    /// The bank answers everything like this.
    pub fn says(&self, behaviour: impl Into<Behaviour>) {
        self.origin.default(behaviour);
    }

    /// Ana pays ten under a key.
    pub async fn pay(&self, key: &str) -> Response {
        self.pay_with(key, &[], TEN).await
    }

    /// With further fields, and another content.
    pub async fn pay_with(&self, key: &str, fields: &[(&str, &str)], content: &[u8]) -> Response {
        let key = [("Idempotency-Key", key)];
        let fields: Vec<_> = ANA.iter().chain(&key).chain(fields).copied().collect();
        self.gateway.request("POST", PAY, &fields, content).await
    }

    /// Ana looks at an operation.
    pub async fn look(&self, address: &str) -> Response {
        self.gateway.get(address, &ANA).await
    }

    /// How many payments reached the bank.
    pub fn received(&self) -> u64 {
        self.origin.count_of("POST", PAY)
    }
}

/// One member of a JSON answer, as text.
pub fn member(answer: &Response, name: &str) -> String {
    let json = answer.json().unwrap_or_else(|error| panic!("{error}: {}", answer.text()));
    match &json[name] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The last part of a problem's type.
pub fn problem(answer: &Response) -> String {
    member(answer, "type").rsplit(':').next().unwrap_or_default().to_owned()
}
