//! A bank behind an `effect` route: what clients hear of payments, and what the bank received.

use std::net::SocketAddr;

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Origin};

use super::policy::replaced;
use super::{BOUND, Gateway, Hand, Policy};

pub const PAY: &str = "/payments";
/// What everybody here sends, beside a key.
pub const ANA: [(&str, &str); 2] = [("Content-Type", "application/json"), ("X-Tenant", "ana")];
/// What a payment looks like.
pub const TEN: &[u8] = br#"{"amount":10,"to":"shop"}"#;

/// Those, and a key.
pub fn keyed(key: &str) -> [(&str, &str); 3] {
    let [content, tenant] = ANA;
    [content, tenant, ("Idempotency-Key", key)]
}

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
    Policy::empty()
        .gateway("trusted = [\"127.0.0.0/8\"]")
        .dependency("bank", origin, "connections = 64")
        .route("pay.effect", &replaced(lines, more))
}

/// `POST /payments` of the payment service, its status asked for often, and for twelve hours. `more` are further lines of the
/// route.
pub fn verified(payments: SocketAddr, more: &str) -> Policy {
    let lines = r#"match = "POST /payments"
dependency = "payments"
deadline = "500ms"
in_flight = 50
scope = "header.x-tenant"
shared_account = false
upstream_retention = "24h"
verify = { first = "20ms", factor = 2, cap = "100ms", deadline = "12h" }
outcome = { succeeded = [{ status = [200, 201], json = { "/status" = "succeeded" } }], pending = [{ status = 202 }, { status = [200, 201], json = { "/status" = "processing" } }], refused = [{ status = [400, 402, 405, 422] }] }"#;
    let query = r#"path = "/payments/by-key/{operation_id}"
timeout = "500ms"
rate = "500/s"
concurrency = 8
echo = { "/operation_id" = "operation_id", "/amount" = "body:/amount" }
succeeded = [{ status = 200, json = { "/status" = "succeeded" } }]
failed = [{ status = 200, json = { "/status" = "declined" } }]
pending = [{ status = 200, json = { "/status" = "processing" } }]
absent = [{ status = 404, json = { "/error/code" = "resource_missing" } }]"#;
    Policy::empty()
        .gateway("trusted = [\"127.0.0.1/32\"]")
        .dependency("payments", payments, "")
        .route("pay.effect", &replaced(lines.lines(), more))
        .table("route.pay.effect.status_query", query)
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
        let fields: Vec<_> = keyed(key).iter().chain(fields).copied().collect();
        self.gateway.request("POST", PAY, &fields, content).await
    }

    /// Ana looks at an operation until it is in a state.
    pub async fn until(&self, address: &str, state: &str) -> Response {
        until(&self.gateway, address, state).await
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

/// Ana pays ten under a key, at whichever gateway.
pub async fn pay_at(gateway: &Gateway, key: &str) -> Response {
    gateway.request("POST", PAY, &keyed(key), TEN).await
}

/// Ana looks at an operation until it is in a state, within the bound.
pub async fn until(gateway: &Gateway, address: &str, state: &str) -> Response {
    let looking = async {
        loop {
            let look = gateway.get(address, &ANA).await;
            if member(&look, "state") == state {
                return look;
            }
        }
    };
    let found = tokio::time::timeout(BOUND, looking).await;
    found.unwrap_or_else(|_over| panic!("never {state}: {:#?}", gateway.log()))
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
