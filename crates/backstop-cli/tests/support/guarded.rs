//! A shop with an authorizer: who may is said by an origin of its own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin};

use super::shop::{HOST, products};
use super::{Gateway, Hand, Policy};

/// Everything that a class needs beside `match`, `deadline` and `in_flight`, once for each class.
pub const CLASSES: [(&str, &str); 7] = [
    ("guarded", ""),
    ("effect", "outcome = { succeeded = [{ status = 200 }] }"),
    ("direct", ""),
    ("public_read", "key = [\"principal\"]\nmax_age = \"60s\"\ncorrect = { type = \"application/json\" }"),
    (
        "cached_read",
        "key = [\"principal\"]\ncache = { url = \"redis://127.0.0.1:1\", ttl = \"5s\" }\nlocal_copy = { max_age = \"60s\" }\ncorrect = { type = \"application/json\" }",
    ),
    ("optional", "otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }"),
    ("composed", "parts = [{ at = \"/part\", route = \"part\", path = \"/part\", required = true }]"),
];

/// The authorizer of [`policy`].
pub const AUTHORIZER: &str = "allow = { status = [200, 204], header = \"x-allowed: yes\" }\nprincipal = \"header.x-user\"\ntells = [\"x-roles\"]\ntimeout = \"100ms\"\nin_flight = 20\nconnect = \"50ms\"";

/// Ana, as the clients of these tests send her.
pub const ANA: [(&str, &str); 2] = [("Host", HOST), ("Authorization", "Bearer ana")];
/// Bob.
pub const BOB: [(&str, &str); 2] = [("Host", HOST), ("Authorization", "Bearer bob")];

/// By what method the route of a class is asked.
pub fn method(class: &str) -> &'static str {
    if matches!(class, "guarded" | "direct" | "effect") { "POST" } else { "GET" }
}

/// A key that no other operation has.
pub fn key() -> String {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    format!("k-{}", KEYS.fetch_add(1, Ordering::Relaxed))
}

/// With a key, on a route that has operations.
pub fn with_key<'a>(fields: &[(&'a str, &'a str)], class: &str, key: &'a str) -> Vec<(&'a str, &'a str)> {
    let key = (class == "effect").then_some(("Idempotency-Key", key));
    fields.iter().copied().chain(key).collect()
}

#[derive(Debug)]
pub struct Guarded {
    pub origin: Origin,
    pub authorizer: Origin,
    pub gateway: Gateway,
    pub hand: Hand,
}

/// One route of each class at `/CLASS`, all behind the authorizer, `part`, which nobody guards, and `/open`.
pub fn policy(origin: SocketAddr, authorizer: SocketAddr, more: &str) -> Policy {
    let common = "dependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 15";
    let policy = Policy::empty()
        .dependency("catalog", origin, "")
        .table("authorizer.sessions", &format!("url = \"http://{authorizer}/check\"\n{AUTHORIZER}\n{more}"))
        .route("part.direct", &format!("match = \"GET /part\"\n{common}"))
        .route("open.direct", &format!("match = \"* /open\"\n{common}"));
    CLASSES.into_iter().fold(policy, |policy, (class, lines)| {
        let method = method(class);
        let asks = if class == "composed" { "deadline = \"1s\"\nin_flight = 15" } else { common };
        let route = format!("match = \"{method} /{class}\"\nauthorizer = \"sessions\"\n{asks}\n{lines}");
        policy.route(&format!("{class}.{class}"), &route)
    })
}

impl Guarded {
    /// With [`policy`]; whoever sends a bearer token may, under its name.
    pub async fn open() -> Self {
        Self::with("").await
    }

    /// With further lines of the authorizer's table.
    pub async fn with(more: &str) -> Self {
        Self::of(|origin, authorizer| policy(origin, authorizer, more)).await
    }

    pub async fn of(policy: impl FnOnce(SocketAddr, SocketAddr) -> Policy) -> Self {
        let (origin, authorizer) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        origin.default(products("first"));
        authorizer.default(bearers());
        let mut gateway = Gateway::start(&policy(origin.addr(), authorizer.addr()));
        HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        Self { origin, authorizer, gateway, hand }
    }

    /// The authorizer answers everything like this.
    pub fn says(&self, behaviour: impl Into<Behaviour>) {
        self.authorizer.on(Matcher::any(), behaviour);
    }

    /// Asks the route of a class as Ana does.
    pub async fn ask(&self, class: &str) -> backstop_lab::client::Response {
        let method = method(class);
        let body: &[u8] = if method == "POST" { b"{}" } else { b"" };
        let key = key();
        let fields = with_key(&ANA, class, &key);
        self.gateway.request(method, &format!("/{class}"), &fields, body).await
    }

    /// How often a result of asking was counted, over all routes.
    pub async fn counted(&self, result: &str) -> u64 {
        let label = format!("result=\"{result}\"");
        self.gateway.metrics().await.sum("backstop_authorizations_total", &[&label]) as u64
    }

    pub fn pass(&mut self, ms: u64) {
        self.hand.advance(Duration::from_millis(ms));
    }
}

/// An explicit yes for whoever sends a bearer token, under its name; else 401 with a challenge.
pub fn bearers() -> Behaviour {
    Behaviour::from_fn(|request| {
        match request.header("authorization").and_then(|it| it.strip_prefix("Bearer ")) {
            Some(name) => yes(name),
            None => Answer::new(401).header("WWW-Authenticate", "Bearer realm=\"shop\"").body("who are you?"),
        }
    })
}

/// An explicit yes.
pub fn yes(name: &str) -> Answer {
    Answer::new(204).header("X-Allowed", "yes").header("X-User", name).header("X-Roles", "buyer")
}
