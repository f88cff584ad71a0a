//! A gateway that keeps a policy's promises in the plainest way, or breaks one of them.
//!
//! It is a lab origin that answers by calling what the policy names. One lock, no speed, no store but a map that survives its
//! restart.

mod call;
mod gate;
mod keep;

use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::time::Instant;

use backstop_engine::policy::{Otherwise, RouteClass};
use backstop_lab::{
    drill::{Facts, RouteFacts, Running, Stage, StageError, Starting},
    origin::{Answer, Behaviour, Origin, Request},
};
use backstop_policy::{AuthorizerKind, Loaded};

use call::{Heard, call};
use gate::Gates;
use keep::{Copies, Kept};

/// The one promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Copies are served however old they are.
    Forever,
    /// The key of a copy is its path alone.
    TenantMissing,
    /// A copy's age is reckoned from the origin's `Date`.
    BelievesDate,
    /// A copy that seems to come from the future is young.
    ServesFuture,
    /// `Age` of an answer is not counted.
    IgnoresAge,
    /// Where there is no copy, something is made up.
    Invents,
    /// A copy does not say that it is one.
    Unmarked,
    /// No limit at the route.
    NoLimit,
    /// No limit at the dependency.
    NoPool,
    /// No deadline.
    NoDeadline,
    /// A short body is passed on as if it were whole.
    PassesCut,
    /// A copy stands in for 404 and its like.
    CopyForErrors,
    /// What the cache does not have is read without a limit.
    UnlimitedDetour,
    /// The whole load returns at once.
    Flood,
    /// It never asks again what failed once.
    NeverBack,
    /// Reads are repeated until they succeed.
    RetriesForEver,
    /// A write whose answer is lost is sent again.
    RetriesWrites,
    /// An authorizer that fails lets everybody in.
    FailOpen,
    /// An authorizer that fails is a no.
    FailForbidden,
}

/// Starts stand-ins.
pub(crate) struct StandIn {
    flaw: Option<Flaw>,
    copies: Arc<Copies>,
}

impl StandIn {
    pub(crate) fn new(flaw: Option<Flaw>) -> Self {
        Self { flaw, copies: Arc::default() }
    }
}

impl Stage for StandIn {
    fn start(&self, policy: Loaded, behind: bool) -> Starting<'_, Box<dyn Running>> {
        let gateway = Gateway {
            facts: Facts::new(policy),
            flaw: self.flaw,
            copies: Arc::clone(&self.copies),
            gates: Arc::default(),
            behind: if behind { Duration::from_secs(3600) } else { Duration::ZERO },
        };
        Box::pin(async move {
            let origin = Origin::start().await.map_err(StageError::from)?;
            let gateway = Arc::new(gateway);
            origin.default(Behaviour::from_async_fn(move |request| {
                let gateway = Arc::clone(&gateway);
                async move { Behaviour::from(gateway.answer(&request).await) }
            }));
            Ok(Box::new(Started(origin)) as Box<dyn Running>)
        })
    }

    fn can_turn_back(&self) -> bool {
        true
    }
}

struct Started(Origin);

impl Running for Started {
    fn address(&self) -> SocketAddr {
        self.0.addr()
    }

    fn stop(self: Box<Self>) -> Starting<'static, ()> {
        Box::pin(async { Ok(()) })
    }
}

struct Gateway {
    facts: Facts,
    flaw: Option<Flaw>,
    copies: Arc<Copies>,
    gates: Arc<Gates>,
    behind: Duration,
}

fn refused(reason: &str) -> Answer {
    let problem = Answer::new(503).header("Content-Type", "application/problem+json").body("{}");
    problem.header("Backstop", &format!("outcome=rejected, reason={reason}"))
}

fn passed(heard: &Heard) -> Answer {
    Answer::new(heard.status).header("Content-Type", "application/json").body(heard.body.clone())
}

impl Gateway {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    async fn answer(&self, request: &Request) -> Answer {
        let begun = Instant::now();
        let Some(index) =
            self.facts.find(request.header("host").unwrap_or_default(), &request.method, &request.target)
        else {
            return Answer::new(404);
        };
        let Some(route) = self.facts.routes().get(index) else { return Answer::new(404) };
        let most = if self.has(Flaw::NoLimit) { u32::MAX } else { route.in_flight };
        let Some(_place) = self.gates.place(&format!("route {}", route.name), most) else {
            return refused("capacity");
        };
        if let Some(no) = self.authorize(index, route, request, begun).await {
            return no;
        }
        let heard = self.ask(index, route, request, begun).await;
        self.decide(index, route, request, heard)
    }

    /// `Some` where the caller may not, or nobody knows.
    async fn authorize(
        &self,
        index: usize,
        route: &RouteFacts,
        request: &Request,
        begun: Instant,
    ) -> Option<Answer> {
        let authorizer = route.authorizer?;
        let settings = self.facts.loaded().authorizers.first()?;
        let AuthorizerKind::Asked(asked) = &settings.kind else { return None };
        let deadline = begun + Duration::from_millis(100);
        let Ok(_place) = self.pool(authorizer) else { return Some(refused("authorizer")) };
        let heard = call(&self.facts, authorizer, "GET", &asked.path, request, deadline, false).await;
        match heard {
            Ok(heard) if asked.allow.contains(heard.status) && heard.sign.as_deref() == Some("yes") => None,
            Ok(heard) if self.facts.denies(index).contains(heard.status) => Some(passed(&heard)),
            _ if self.has(Flaw::FailOpen) => None,
            _ if self.has(Flaw::FailForbidden) => Some(Answer::new(403)),
            _ => Some(refused("authorizer")),
        }
    }

    /// The dependency's answer, or why there is none.
    async fn ask(
        &self,
        index: usize,
        route: &RouteFacts,
        request: &Request,
        begun: Instant,
    ) -> Result<Heard, String> {
        let dependency = route.dependency.ok_or("none")?;
        let patience =
            if self.has(Flaw::NoDeadline) { Duration::from_secs(2) } else { route.deadline.mul_f64(0.7) };
        let _fill = match route.fill {
            Some((at_once, _)) if !self.has(Flaw::UnlimitedDetour) => {
                Some(self.gates.place("fill", at_once).ok_or("resource_full")?)
            }
            _ => None,
        };
        let may_write = request.method == "POST";
        let attempts = match () {
            () if self.has(Flaw::RetriesForEver) => 5,
            () if may_write && self.has(Flaw::RetriesWrites) => 2,
            () => 1,
        };
        let mut last = Err("none".to_owned());
        for _ in 0..attempts {
            last = self.once(dependency, request, begun + patience).await;
            if last.is_ok() {
                break;
            }
        }
        match (&last, route.alternative) {
            (Err(_), Some(other)) => {
                let _place = self.pool(other)?;
                let heard =
                    call(&self.facts, other, "GET", &request.target, request, begun + patience, false).await;
                heard.map(|heard| Heard { stands_in: true, ..heard }).or(last)
            }
            _ => last,
        }
        .inspect(|heard| self.keep(index, request, heard, begun))
    }

    fn pool(&self, dependency: usize) -> Result<gate::Place, String> {
        let upstream = self.facts.upstreams().get(dependency).ok_or("none")?;
        let most = if self.has(Flaw::NoPool) { u32::MAX } else { upstream.connections };
        self.gates.place(&format!("pool {}", upstream.name), most).ok_or_else(|| "dependency_full".to_owned())
    }

    async fn once(&self, dependency: usize, request: &Request, deadline: Instant) -> Result<Heard, String> {
        let rules = self.facts.policy().dependencies.get(dependency).ok_or("none")?;
        let recovery = rules.recovery.filter(|_| !self.has(Flaw::Flood));
        self.gates.may_ask(
            dependency,
            rules.breaker.as_ref(),
            recovery.as_ref(),
            self.has(Flaw::NeverBack),
        )?;
        let _place = self.pool(dependency)?;
        let cut = self.has(Flaw::PassesCut);
        let heard =
            call(&self.facts, dependency, &request.method, &request.target, request, deadline, cut).await;
        self.gates.heard(dependency, heard.is_ok(), rules.breaker.as_ref());
        heard
    }

    fn key(&self, index: usize, request: &Request) -> String {
        let fields = ["accept-language", "x-tenant"].map(|name| request.header(name).unwrap_or_default());
        let fields = if self.has(Flaw::TenantMissing) { ["", ""] } else { fields };
        format!("{index} {} {fields:?}", request.target)
    }

    fn keep(&self, index: usize, request: &Request, heard: &Heard, begun: Instant) {
        let age = if self.has(Flaw::IgnoresAge) { Duration::ZERO } else { heard.age };
        if heard.status == 200 && heard.is_json {
            let kept = Kept { heard: heard.clone(), begun, age };
            self.copies.put(self.key(index, request), kept);
        }
    }

    fn decide(
        &self,
        index: usize,
        route: &RouteFacts,
        request: &Request,
        heard: Result<Heard, String>,
    ) -> Answer {
        let is_error = heard.as_ref().is_ok_and(|heard| heard.status >= 400);
        match heard {
            Ok(heard) if !(is_error && self.has(Flaw::CopyForErrors)) => {
                let answer = passed(&heard);
                if heard.stands_in {
                    return answer.header("Backstop", "outcome=fallback, source=alternative, reason=connect");
                }
                if heard.status >= 500 {
                    answer.header("Backstop", "outcome=failed, reason=server_error")
                } else {
                    answer
                }
            }
            Ok(_) => self.copy(index, route, request, "unavailable"),
            Err(reason) => self.copy(index, route, request, &reason),
        }
    }

    /// What stands in, or a refusal.
    fn copy(&self, index: usize, route: &RouteFacts, request: &Request, reason: &str) -> Answer {
        let otherwise = self.facts.rules(index).map(|rules| &rules.class);
        if let Some(RouteClass::Optional(optional)) = otherwise {
            let (Otherwise::Omit(fixed) | Otherwise::Prepared(fixed)) = &optional.otherwise;
            let answer = Answer::new(fixed.status).body(fixed.body.to_vec());
            return answer.header("Backstop", &format!("outcome=fallback, source=omitted, reason={reason}"));
        }
        let Some(max_age) = route.max_age else {
            return Answer::new(502).header("Backstop", &format!("outcome=failed, reason={reason}"));
        };
        let Some(kept) = self.copies.get(&self.key(index, request)) else {
            if self.has(Flaw::Invents) {
                return Answer::new(200).header("Content-Type", "application/json").body("{}");
            }
            return refused(&format!("missing, cause={reason}"));
        };
        let (age, is_future) = kept.age_at(Instant::now(), self.behind, self.has(Flaw::BelievesDate));
        let is_young = age <= max_age && !is_future || is_future && self.has(Flaw::ServesFuture);
        if !is_young && !self.has(Flaw::Forever) {
            return refused(&format!("age, cause={reason}"));
        }
        let answer = passed(&kept.heard);
        if self.has(Flaw::Unmarked) {
            return answer;
        }
        let age = if self.has(Flaw::Forever) { 0 } else { age.as_secs() };
        answer.header("Backstop", &format!("outcome=fallback, source=snapshot, age={age}, reason={reason}"))
    }
}
