//! A shop whose callers show signed tokens: an issuer with keys of its own, made anew in each process.

use std::net::SocketAddr;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::guarded::{self, CLASSES};
use super::shop::{HOST, products};
use super::{Gateway, Hand, Policy};

/// A key that signs with ES256.
#[derive(Debug)]
pub struct Key {
    pub id: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    pub fn new(id: &'static str) -> Self {
        Self { id, pair: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key") }
    }

    /// Its public half as a JWK (RFC 7517).
    pub fn jwk(&self) -> String {
        let point = self.pair.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        format!(
            "{{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"{}\",\"x\":\"{}\",\"y\":\"{}\"}}",
            self.id,
            base64url(x),
            base64url(y)
        )
    }

    /// A token for the shop in this name, until a second since 1970 (RFC 7519).
    pub fn token(&self, subject: &str, expires_s: i64) -> String {
        let claims = format!(
            "{{\"iss\":\"https://login.example\",\"aud\":\"shop\",\"sub\":\"{subject}\",\"exp\":{expires_s}}}"
        );
        let header = format!("{{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"{}\"}}", self.id);
        let message = format!("{}.{}", base64url(header), base64url(claims));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
        format!("{message}.{}", base64url(signature))
    }
}

fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A JWK Set of these keys.
pub fn set(keys: &[&Key]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| key.jwk()).collect();
    format!("{{\"keys\":[{}]}}", keys.join(","))
}

/// The routes of [`guarded::policy`] behind tokens: keys are believed for 60 s and fetched every 15 s, within 2 s.
pub fn policy(origin: SocketAddr, issuer: SocketAddr) -> Policy {
    guarded::policy(origin, issuer, "").replace_table("authorizer.sessions", |_| {
        format!(
            "[authorizer.sessions]\nprincipal = \"header.x-user\"\ntimeout = \"100ms\"\n\n[authorizer.sessions.jwt]\nkeys = \"http://{issuer}/jwks\"\nissuer = \"https://login.example\"\naudience = \"shop\"\nalgorithms = \"ES256\"\nmax_age = \"60s\"\ntimeout = \"2s\"\n"
        )
    })
}

#[derive(Debug)]
pub struct Signed {
    pub origin: Origin,
    pub issuer: Origin,
    pub gateway: Gateway,
    pub hand: Hand,
    pub key: Key,
}

impl Signed {
    /// The issuer publishes one key. The clock stands still, and somebody vouches for it.
    pub async fn open() -> Self {
        Self::opened(2).await
    }

    /// With one worker thread: once it has answered a request, whatever it was woken for before has come about.
    pub async fn open_on_one_thread() -> Self {
        Self::opened(1).await
    }

    async fn opened(threads: usize) -> Self {
        let issuer = Origin::start().await.expect("an issuer");
        let key = Key::new("first");
        issuer.default(Answer::json(set(&[&key])));
        let shop = Self::on(issuer, key, threads).await;
        let token = shop.token("ana");
        assert_eq!(shop.ask("direct", &token).await.status(), 200, "{:#?}", shop.gateway.log());
        shop
    }

    /// In front of this issuer.
    pub async fn before(issuer: Origin, key: Key) -> Self {
        Self::on(issuer, key, 2).await
    }

    async fn on(issuer: Origin, key: Key, threads: usize) -> Self {
        let origin = Origin::start().await.expect("an origin");
        origin.default(products("first"));
        let mut gateway =
            Gateway::start(&policy(origin.addr(), issuer.addr()).gateway(&format!("threads = {threads}")));
        HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        hand.say("sync on");
        Self { origin, issuer, gateway, hand, key }
    }

    /// A token of the first key, for a day.
    pub fn token(&self, subject: &str) -> String {
        self.key.token(subject, now_s() + 86_400)
    }

    /// The issuer answers everything like this.
    pub fn says(&self, behaviour: impl Into<Behaviour>) {
        self.issuer.on(Matcher::any(), behaviour);
    }

    /// The issuer publishes these.
    pub fn publishes(&self, keys: &[&Key]) {
        self.says(Answer::json(set(keys)));
    }

    /// Asks the route of a class with these lines of `Authorization`.
    pub async fn shows(&self, class: &str, lines: &[&str]) -> Response {
        let (method, key) = (guarded::method(class), guarded::key());
        let body: &[u8] = if method == "POST" { b"{}" } else { b"" };
        let mut fields = vec![("Host", HOST)];
        fields.extend(lines.iter().map(|line| ("Authorization", *line)));
        let fields = guarded::with_key(&fields, class, &key);
        self.gateway.request(method, &format!("/{class}"), &fields, body).await
    }

    /// Asks the route of a class with a token.
    pub async fn ask(&self, class: &str, token: &str) -> Response {
        self.shows(class, &[&format!("Bearer {token}")]).await
    }

    /// Fetches that were begun so far.
    pub async fn fetches(&self) -> u64 {
        let labels = ["dependency=\"sessions\"", "result=\"begun\""];
        self.gateway.metrics().await.sum("backstop_dependency_calls_total", &labels) as u64
    }

    /// Time goes by, and a fetch begins by it. Requests wait for its end.
    pub async fn pass_to_a_fetch(&mut self, ms: u64) {
        let before = self.fetches().await;
        self.pass(ms);
        let labels = ["dependency=\"sessions\"", "result=\"begun\""];
        let begun = |metrics: &super::Metrics| {
            metrics.sum("backstop_dependency_calls_total", &labels) as u64 > before
        };
        self.gateway.metrics_until(begun).await;
    }

    /// How often a result of asking was counted, over all routes.
    pub async fn counted(&self, result: &str) -> u64 {
        let label = format!("result=\"{result}\"");
        self.gateway.metrics().await.sum("backstop_authorizations_total", &[&label]) as u64
    }

    pub fn pass(&mut self, ms: u64) {
        self.hand.advance(Duration::from_millis(ms));
    }

    /// Every class.
    pub fn classes() -> impl Iterator<Item = &'static str> {
        CLASSES.into_iter().map(|(class, _)| class)
    }
}

/// Seconds since 1970.
pub fn now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_secs()).expect("this century")
}
