//! The gateway of every class, origins that fail as they are told, and what it does then.

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin, Request, Then};

use crate::support::guarded::yes;
use crate::support::shop::{HOST, down, right_answer};
use crate::support::{BOUND, Gateway, Hand, Policy};

/// Every failure that an origin of the lab can have.
pub(crate) const FAILURES: [&str; 13] = [
    "ok",
    "incorrect",
    "500",
    "503",
    "404",
    "429",
    "reset",
    "incomplete",
    "protocol",
    "connect",
    "read_timeout",
    "connect_timeout",
    "410",
];
/// Of a second at most; on both sides of the 60 s that a copy may be old.
pub(crate) const AGES: [Option<&str>; 5] =
    [None, Some("0s"), Some("59s"), Some("60s"), Some("60000000001ns")];
/// What stands in a request beside its host.
pub(crate) const FIELDS: [&[(&str, &str)]; 4] = [
    &[("Accept-Language", "es"), ("X-Tenant", "a")],
    &[("Accept-Language", "es"), ("X-Tenant", "a"), ("Backstop-Explain", "?1")],
    &[("Accept-Language", "es"), ("X-Tenant", "a"), ("Cache-Control", "no-store")],
    &[("Accept-Language", "es"), ("X-Tenant", "a"), ("Authorization", "Basic YTpi")],
];
/// By hand: 300 ms without 3 ms for the reply and 3 ms for the copy.
pub(crate) const READ: Duration = Duration::from_millis(294);
/// Longer than the deadline of every other route here.
pub(crate) const LONG: Duration = Duration::from_millis(600);

/// One request that was played, and how `explain` is asked about it.
pub(crate) struct Case {
    pub(crate) arguments: Vec<String>,
    pub(crate) got: Got,
}

/// What the gateway did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) field: Option<String>,
    pub(crate) is_cut: bool,
    pub(crate) received: u64,
}

pub(crate) struct Stage {
    pub(crate) catalog: Origin,
    pub(crate) authorizer: Origin,
    pub(crate) gateway: Gateway,
    pub(crate) hand: Hand,
    pub(crate) cases: Vec<Case>,
    /// Requests so far: each gets a name of its own.
    pub(crate) asked: u32,
    /// Requests that only prepared others, by route: all of them normal.
    pub(crate) prepared: BTreeMap<String, u64>,
}

pub(crate) fn policy(catalog: &Origin, authorizer: &Origin) -> Policy {
    let route = |rule: &str| {
        format!("match = \"{rule}\"\ndependency = \"catalog\"\ndeadline = \"500ms\"\nin_flight = 10")
    };
    let read = |rule: &str, more: &str| Policy::description(&format!("match = \"{rule}\"\n{more}"));
    let otherwise = "otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }";
    let parts = "parts = [{ at = \"/a\", route = \"part\", path = \"/part/{id}\", required = true }, { at = \"/b\", route = \"side\", path = \"/side/{id}\" }]";
    let outcome = "scope = \"route\"\noutcome = { succeeded = [{ status = 200, json = { \"/status\" = \"paid\" } }], refused = [{ status = 422 }] }";
    Policy::empty()
        .dependency("catalog", catalog.addr(), "connections = 3\nconnect = \"100ms\"")
        .table(
            "authorizer.sessions",
            &format!(
                "url = \"http://{}/check\"\nallow = {{ status = [200, 204], header = \"x-allowed: yes\" }}\nprincipal = \"header.x-user\"\ntimeout = \"100ms\"\nin_flight = 20\nbreaker = {{ min_calls = 1000 }}",
                authorizer.addr()
            ),
        )
        .route("description.public_read", &read("GET /p/{id}", "in_flight = 2"))
        .route("declared.public_read", &read("GET /d/{id}", "declared = [500, 429]\nincorrect = \"fallback\"\nunavailable_status = \"cause\""))
        .route("best.optional", &format!("{}\n{otherwise}", route("GET /best/{id}")))
        .route("plain.direct", &route("* /plain/{id}"))
        .route("account.guarded", &format!("{}\nauthorizer = \"sessions\"", route("POST /account/{id}")))
        .route("page.composed", &format!("match = \"GET /page/{{id}}\"\ndeadline = \"500ms\"\nin_flight = 10\n{parts}"))
        .route("part.public_read", &read("GET /part/{id}", "languages =\nkey = [\"path.id\"]\ncorrect = { type = \"application/json\" }"))
        .route("side.optional", &format!("{}\notherwise = {{ omit = {{ status = 204 }} }}", route("GET /side/{id}")))
        .route("pay.effect", &format!("{}\n{outcome}", route("POST /pay/{id}")))
        .route(
            "reviews.cached_read",
            &read("GET /reviews/{id}", "cache = { url = \"redis://127.0.0.1:1\", ttl = \"5s\" }\nlocal_copy = { max_age = \"60s\" }\nmax_age ="),
        )
}

/// A right answer on every route.
pub(crate) fn right(request: &Request) -> Answer {
    if request.path().starts_with("/pay/") {
        return Answer::json(r#"{"status":"paid"}"#);
    }
    right_answer(request, "right")
}

impl Stage {
    pub(crate) async fn open() -> Self {
        let (catalog, authorizer) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        catalog.default(Behaviour::from_fn(right));
        authorizer.default(yes("ana"));
        let mut gateway = Gateway::start(&policy(&catalog, &authorizer));
        HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        let (cases, prepared) = (Vec::new(), BTreeMap::new());
        Self { catalog, authorizer, gateway, hand, cases, asked: 0, prepared }
    }

    /// A new request, a second after the one before, which holds nothing any more: what it took of a rate and of places is there
    /// again.
    pub(crate) async fn name(&mut self) -> u32 {
        let metrics = self.gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        assert_eq!(metrics.in_flight(), 0, "what was begun has ended");
        self.hand.pass(Duration::from_secs(1));
        self.asked += 1;
        self.asked
    }

    /// A request that only prepares another one, and is answered normally.
    pub(crate) async fn prepare(&mut self, route: &str, target: &str, fields: &[(&str, &str)]) {
        let answer = self.gateway.get(target, fields).await;
        assert_eq!(answer.status(), 200, "{target}: {:?}", answer.head);
        *self.prepared.entry(route.to_owned()).or_default() += 1;
    }

    /// From now on the origin fails so.
    pub(crate) async fn breaks(origin: &Origin, failure: &str) {
        let behaviour: Behaviour = match failure {
            "ok" => return,
            "allow" => return,
            "deny" => Answer::new(401).into(),
            "unclear" => Answer::new(204).into(),
            "incorrect" => Answer::json("{}").into(),
            "reset" => Behaviour::reset(),
            "incomplete" => Behaviour::truncated(40, 20),
            "protocol" => Behaviour::raw("this is no HTTP\r\n\r\n", Then::Close),
            "read_timeout" => Behaviour::hang(),
            "connect" => return down(origin).await,
            "connect_timeout" => {
                origin.close_connections();
                origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
                return origin.fill_backlog().await.unwrap();
            }
            status => Behaviour::status(status.parse().unwrap()),
        };
        origin.on(Matcher::any(), behaviour);
    }

    /// It is well again, and what it did is forgotten.
    pub(crate) async fn heals(origin: &Origin, failure: &str, default: impl Into<Behaviour>) {
        if matches!(failure, "connect" | "connect_timeout") {
            origin.accept_again().await.unwrap();
        }
        origin.reset();
        origin.default(default);
    }

    /// Plays a request; `time` passes once it hangs.
    pub(crate) async fn play(
        &mut self,
        (method, target): (&str, &str),
        fields: &[(&str, &str)],
        body: &[u8],
        hangs: Option<Duration>,
    ) -> Got {
        let (catalog, authorizer) = (&self.catalog, &self.authorizer);
        let (hand, gateway) = (&mut self.hand, &self.gateway);
        let before = (catalog.count(), authorizer.count());
        let opening = catalog.connections_open();
        let answer = gateway.request(method, target, fields, body);
        let passing = async {
            let Some(time) = hangs else { return std::future::pending().await };
            // A call that hangs has come to somebody, or it holds a connection that does not come about.
            let is_open = ["dependency=\"catalog\"", "state=\"open\""];
            while (catalog.count(), authorizer.count()) == before
                && gateway.metrics().await.sum("backstop_upstream_connections", &is_open) <= opening as f64
            {
                tokio::task::yield_now().await;
            }
            hand.pass(time);
            // Where it began to wait only now, the same time passes once more.
            loop {
                for _ in 0..20 {
                    gateway.metrics().await;
                }
                hand.pass(time);
            }
        };
        let response = tokio::select! {
            response = answer => response,
            () = passing => unreachable!("it goes on for ever"),
        };
        if hangs.is_some() {
            // What goes on when nobody waits any more has ended by then, and its places are free.
            hand.pass(Duration::from_secs(3));
            catalog.close_connections();
            authorizer.close_connections();
            catalog.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
        }
        let field = response.header("backstop").map(str::to_owned);
        let received = catalog.count() - before.0;
        Got { status: response.status(), field, is_cut: !response.is_complete(), received }
    }

    pub(crate) fn explained(&mut self, words: &[&str], fields: &[(&str, &str)], got: Got) {
        let mut arguments = vec!["explain".to_owned(), "policy.toml".to_owned()];
        arguments.extend(words.iter().map(ToString::to_string));
        arguments.extend(["--host".to_owned(), HOST.to_owned(), "--json".to_owned()]);
        for (name, value) in fields {
            arguments.extend(["--header".to_owned(), format!("{name}: {value}")]);
        }
        self.cases.push(Case { arguments, got });
    }
}
