//! One query, from its place in the budget to what is recorded of it.

use std::rc::Rc;
use std::time::Duration;

use backstop::operation::key::is_quoted;
use backstop_engine::operation::{Claim, SecondLook, Standing};
use backstop_engine::time::Mono;
use backstop_store::ledger::checkpoint::{Checkpoint, pass};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::answer::{About, Said, Why, said};
use super::breaker::Begun;
use super::calibration::{Sample, Seen};
use super::counts::{add, set};
use super::route::{Asking, Route};
use super::turn::Shared;

/// The log is told so often at most that credentials are refused.
const ALARM_PAUSE: Duration = Duration::from_secs(60);

/// A place in a route's budget. Dropped, it goes back, and the route is looked at again.
#[derive(Debug)]
pub(super) struct Place {
    route: Rc<Route>,
    shared: Rc<Shared>,
    is_begun: bool,
    is_second_look: bool,
}

impl Place {
    /// One that was claimed.
    pub(super) fn new(route: Rc<Route>, shared: Rc<Shared>) -> Self {
        Self { route, shared, is_begun: false, is_second_look: false }
    }

    /// The one of a route's second look.
    pub(super) fn of_second_look(route: Rc<Route>, shared: Rc<Shared>) -> Self {
        Self { route, shared, is_begun: false, is_second_look: true }
    }

    fn asking(&self) -> Option<&Asking> {
        self.route.asking.as_ref()
    }

    /// Waits until the budget lets it begin. `None` if nothing is asked now, because the breaker has opened.
    async fn begin(&mut self) -> Option<(Mono, Begun)> {
        loop {
            let asking = self.route.asking.as_ref()?;
            let now = self.shared.clock.mono();
            let begun = asking.budget.borrow_mut().begin(now);
            match begun {
                Ok(()) => {
                    self.is_begun = true;
                    return Some((now, asking.breaker.borrow_mut().begin(now)?));
                }
                Err(at) => self.shared.clock.sleep_until(at).await,
            }
        }
    }

    /// Asks, and says what came of it.
    async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        about: About<'_>,
        (asked, begun): (Mono, Begun),
    ) -> Said {
        let Some(asking) = self.asking() else { return Said::Nothing(Why::NotAsked) };
        let answer = asking.way.exchange(request, asked.after(asking.rules.timeout)).await;
        let said = match answer {
            Ok(answer) => said(&asking.rules, answer.status, &answer.content, answer.is_earlier, about),
            Err(why) => Said::Nothing(why),
        };
        let now = self.shared.clock.mono();
        let opened = if said.is_failure() {
            asking.breaker.borrow_mut().failed(begun, now, self.shared.bits())
        } else {
            asking.breaker.borrow_mut().answered(begun);
            false
        };
        let counts = self.route.counts(&self.shared);
        set(&counts.breaker_is_open, asking.breaker.borrow().is_open());
        if opened {
            add(&counts.breaker_opened);
        }
        if said.is_found() {
            asking.credentials.borrow_mut().told_of(about.upstream_id, now);
        }
        if said == Said::Nothing(Why::Credentials) {
            asking.credentials.borrow_mut().refused();
            self.alarm(asking, now);
        }
        said
    }

    fn alarm(&self, asking: &Asking, now: Mono) {
        if asking.alarmed.get().is_some_and(|at| now < at.after(ALARM_PAUSE)) {
            return;
        }
        asking.alarmed.set(Some(now));
        tracing::error!(
            target: "backstop::operations",
            route = %self.route.name,
            "the upstream refuses the credentials of status queries, so unknown operations stay unknown: correct the \
             route's `request_headers`, or the rights that they give"
        );
    }

    /// The task of this query has panicked, which ends it alone. Its operation is asked for again when its lease is over.
    fn is_lost(&self) {
        tracing::error!(
            target: "backstop::operations",
            route = %self.route.name,
            "a status query has panicked: report this with what the process wrote to standard error"
        );
        // Whoever panicked may hold it.
        if let Some(Ok(mut breaker)) = self.asking().map(|asking| asking.breaker.try_borrow_mut()) {
            breaker.lost(self.shared.clock.mono(), self.shared.bits());
        }
    }

    /// What is known of the upstream when it does not know an operation.
    fn standing(&self, upstream_id: &[u8]) -> Standing {
        let now = self.shared.clock.mono();
        let Some(asking) = self.asking() else {
            return Standing { has_good_credentials: false, shows_recent: false };
        };
        let has_good_credentials = asking.credentials.borrow().vouches_for(upstream_id, now);
        let shows_recent = asking.samples.borrow().as_ref().is_none_or(|samples| samples.shows_recent());
        if asking.absence.is_some() && !(has_good_credentials && shows_recent) {
            add(&self.route.counts(&self.shared).absences_suspended);
        }
        Standing { has_good_credentials, shows_recent }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(asking) = &self.route.asking {
            let mut budget = asking.budget.borrow_mut();
            if self.is_begun {
                budget.ended()
            } else {
                budget.given_up()
            }
            if self.is_second_look {
                asking.again.borrow_mut().ended();
            }
        }
        if std::thread::panicking() {
            self.is_lost();
        }
        self.route.is_woken.set(true);
        self.shared.ended.notify_one();
    }
}

/// Asks for an operation's status and records what it says.
pub(super) async fn operation(mut place: Place, claim: Claim, request: Request<Full<Bytes>>) {
    pass(Checkpoint::QueryClaimed);
    let begun = place.begin().await;
    let (route, shared) = (Rc::clone(&place.route), Rc::clone(&place.shared));
    let Some((now, begun)) = begun else {
        add(&route.counts(&shared).put_back);
        let report = claim.put_back(route.draw(&shared));
        let _asked_again_after_its_lease = route.record(report, &shared, shared.clock.now()).await;
        return;
    };
    let asked = claim.ask(now);
    let identity = &asked.record().identity;
    let upstream_id = identity.upstream_id.as_deref().unwrap_or_default();
    let about = About { secret: &shared.operations.secret, upstream_id, captured: Some(&identity.captured) };
    let said = place.ask(request, about, (now, begun)).await;
    pass(Checkpoint::QueryAnswered);
    route.counts(&shared).query(said);
    let standing = (said == Said::Absent).then(|| place.standing(upstream_id));
    tracing::debug!(
        target: "backstop::operations",
        operation = %identity.id,
        route = %route.name,
        said = said.token(),
        "asked for the status of an operation"
    );
    let next = route.draw(&shared);
    let report = match (said, standing) {
        (Said::Succeeded, _) => asked.succeeded(next),
        (Said::Failed, _) => asked.failed(next),
        (Said::Pending | Said::Unnamed, _) => asked.pending(next),
        (Said::Mismatch, _) => asked.mismatch(next),
        (Said::Several, _) => asked.several_matches(next),
        (Said::Absent, Some(standing)) => {
            // Whether the service knows a key by its quotes or without them nobody has seen: that it does not know it so says nothing.
            let id_is_quoted = asked.record().identity.upstream_id.as_deref().is_some_and(is_quoted);
            let rule = route.asking.as_ref().and_then(|asking| asking.absence).filter(|_| !id_is_quoted);
            asked.absent(rule, standing, next)
        }
        (Said::Absent | Said::Nothing(_), _) => asked.inconclusive(next),
    };
    let _asked_again_after_its_lease = route.record(report, &shared, shared.clock.now()).await;
}

/// Asks again about an operation that was decided by absence. Only that it was executed says anything: whatever else there is, it
/// counts as not executed already, or nothing is known that was not before.
pub(super) async fn second_look(mut place: Place, look: SecondLook, request: Request<Full<Bytes>>) {
    let begun = place.begin().await;
    let Some(asking) = place.asking() else { return };
    let Some(begun) = begun else {
        asking.again.borrow_mut().put_back(look);
        return;
    };
    let (route, shared) = (Rc::clone(&place.route), Rc::clone(&place.shared));
    let identity = &look.record().identity;
    let upstream_id = identity.upstream_id.as_deref().unwrap_or_default();
    let about = About { secret: &shared.operations.secret, upstream_id, captured: Some(&identity.captured) };
    let said = place.ask(request, about, begun).await;
    let counts = route.counts(&shared);
    add(&counts.second_looks);
    tracing::debug!(
        target: "backstop::operations",
        operation = %identity.id,
        route = %route.name,
        said = said.token(),
        "took a second look at an operation that was not executed"
    );
    if said == Said::Succeeded {
        add(&counts.executed_late);
        let report = look.executed(route.draw(&shared));
        let _seen_again_next_time = route.record(report, &shared, shared.clock.now()).await;
    }
}

/// Asks for the status of a known success.
pub(super) async fn sample(mut place: Place, sample: Sample, request: Request<Full<Bytes>>) {
    let begun = place.begin().await;
    let Some(asking) = place.asking() else { return };
    let Some((now, begun)) = begun else {
        if let Some(samples) = asking.samples.borrow_mut().as_mut() {
            samples.given_back(&sample);
        }
        return;
    };
    let secret = &place.shared.operations.secret;
    let about = About { secret, upstream_id: sample.upstream_id(), captured: None };
    let said = place.ask(request, about, (now, begun)).await;
    let counts = place.route.counts(&place.shared);
    add(&counts.sample_queries);
    let mut samples = asking.samples.borrow_mut();
    let Some(samples) = samples.as_mut() else { return };
    let was_failing = samples.is_failing();
    match samples.answered(&sample, now, said == Said::Succeeded) {
        Seen::InTime => add(&counts.samples_seen),
        Seen::NotInTime => add(&counts.samples_not_seen),
        Seen::NotYet => {}
    }
    set(&counts.calibration_is_failing, samples.is_failing());
    if samples.is_failing() && !was_failing {
        tracing::warn!(
            target: "backstop::operations",
            route = %place.route.name,
            "the status query does not show a known success in time: no absence counts until it shows one"
        );
    }
}
