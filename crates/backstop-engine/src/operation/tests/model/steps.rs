//! Everything that can happen next.

use super::super::super::{Change, Refused, apply, claim, lease_ended, overdue, recover, second_look};
use super::super::support::{EPOCH, draw, intent, seconds};
use super::bridge::{self, heard, record, row};
use super::world::{
    CLAIMS, CONTRADICTED, FORWARDS, KILLS, Replica, Reply, SUBMISSIONS, Seen, TOLD_OK, Variant, World, Wrong,
};
use crate::operation::{Begin, Doubt, EvidenceKind, KeptAnswer, Refusal, Report, State, begin};

/// A step, as a trace shows it; with the number of the replica that takes it.
pub(super) type Label = (&'static str, u8);

pub(super) struct Steps<'a> {
    variant: &'a Variant,
    world: World,
    next: Vec<(Label, World)>,
}

/// Every step from a world, with where it leads.
pub(super) fn steps(world: World, variant: &Variant) -> Vec<(Label, World)> {
    let mut steps = Steps { variant, world, next: Vec::new() };
    for at in 0..variant.replicas() {
        steps.client(at);
        steps.kill(at);
        steps.owner(at);
        steps.reconciler(at);
        steps.second_look(at);
    }
    steps.time();
    steps.upstream();
    steps.next
}

impl Steps<'_> {
    fn add(&mut self, label: &'static str, at: usize, to: World) {
        self.next.push(((label, at as u8), to));
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.variant.is(wrong)
    }

    /// The client submits its request to an idle replica.
    fn client(&mut self, at: usize) {
        let world = self.world;
        if world.replicas[at] != Replica::Idle || world.submissions == SUBMISSIONS {
            return;
        }
        let submitted = World { submissions: world.submissions + 1, ..world };
        let existing = world.row.map(record);
        match begin(existing.as_ref(), intent(), EPOCH, &bridge::meanwhile()).unwrap() {
            Begin::New(pending) => {
                let new = row(&pending.record().progress);
                let to = World { row: Some(new), ..submitted };
                self.add("submit: intent durable", at, to.with(at, Replica::Before(new.fence)));
            }
            Begin::Again => {
                let told = world.row.map(heard).unwrap_or_default();
                self.add("submit: answered from the ledger", at, submitted.tell(told));
            }
            Begin::OtherRequest => unreachable!("there is one request"),
        }
    }

    fn kill(&mut self, at: usize) {
        let world = self.world;
        if world.replicas[at] == Replica::Idle || world.kills == KILLS {
            return;
        }
        let killed = World { kills: world.kills + 1, ..world }.with(at, Replica::Idle);
        if self.is(Wrong::IntentNotDurable)
            && world.row.is_some_and(|row| row.state == State::Dispatching)
            && matches!(world.replicas[at], Replica::Before(_) | Replica::Sent(_) | Replica::Answered(..))
        {
            self.add("killed, its intent is lost", at, World { row: None, ..killed });
        }
        if self.variant.is_embedded {
            // The ledger is opened again in its next life, and settling begins anew.
            let now = bridge::meanwhile();
            let recovered = world
                .row
                .and_then(|row| recover(&record(row), 0, bridge::EPOCH_AFTER, &now))
                .map(|change| row(&change.progress));
            let to = World { row: recovered.or(world.row), is_settled: false, ..killed };
            self.add("killed and started again", at, to);
        } else {
            self.add("killed", at, killed);
        }
    }

    /// Whoever forwards.
    fn owner(&mut self, at: usize) {
        let world = self.world;
        match world.replicas[at] {
            Replica::Before(fence) => {
                let now = bridge::meanwhile().mono;
                // A paused one looks at its clock before its pause, so it may send at any time.
                assert!(bridge::intent(fence).forward(now).is_ok());
                let to = World {
                    on_the_way: world.on_the_way | 1 << fence,
                    forwards: (world.forwards + 1).min(FORWARDS),
                    ..world
                };
                self.add("forward", at, to.with(at, Replica::Sent(fence)));
            }
            Replica::Sent(fence) => {
                self.add("timeout", at, world.with(at, Replica::Answered(fence, Reply::Nothing)));
            }
            Replica::Answered(fence, reply) => self.record(at, fence, reply),
            Replica::Idle | Replica::Claimed(_) | Replica::Asked(..) | Replica::SawLate(_) => {}
        }
    }

    fn record(&mut self, at: usize, fence: u8, reply: Reply) {
        if reply == Reply::Ok && self.is(Wrong::ReplyFirst) && self.world.told & TOLD_OK == 0 {
            self.add("reply before the record", at, self.world.tell(TOLD_OK));
        }
        let forwarding = bridge::forwarding(fence);
        let kept = KeptAnswer::of_status;
        let (label, report) = match reply {
            Reply::Ok => ("record: succeeded", forwarding.succeeded(kept(201))),
            Reply::ServerError if !self.is(Wrong::ServerErrorFails) => {
                ("record: unknown", forwarding.unknown(Doubt::ServerError, draw()))
            }
            Reply::Refused | Reply::ServerError => {
                ("record: failed", forwarding.refused(Refusal::of_status(402, false).unwrap(), kept(402)))
            }
            Reply::Nothing => ("record: unknown", forwarding.unknown(Doubt::Timeout, draw())),
        };
        let to = self.written(at, &report, label);
        let is_unknown = label == "record: unknown";
        if let Some(mut to) = to {
            if is_unknown && self.is(Wrong::KeyReleased) {
                to.row = None;
                self.add("key released", at, to);
                return;
            }
            let told = to.row.map(heard).unwrap_or_default();
            self.add(label, at, to.tell(told));
        } else {
            self.add("record: overtaken", at, self.world.with(at, Replica::Idle));
        }
    }

    /// What a report makes of the ledger.
    fn written(&self, at: usize, report: &Report, label: &str) -> Option<World> {
        let done = self.world.with(at, Replica::Idle);
        let row = self.world.row?;
        if self.is(Wrong::NoComparison) {
            let evidence = |word| State::parse(word, EvidenceKind::Direct.token()).unwrap();
            let state = match label {
                "record: succeeded" | "status: found" => evidence("succeeded"),
                "record: failed" => evidence("failed"),
                _ => State::Unknown(Doubt::Timeout),
            };
            return Some(World { row: Some(bridge::forced(row.fence, state)), ..done });
        }
        match apply(&record(row), report, EPOCH, &bridge::report_time()) {
            Ok(change) => Some(Self::changed(done, &change)),
            Err(Refused::Stale | Refused::Decided | Refused::NotNow | Refused::Leased) => None,
        }
    }

    fn changed(world: World, change: &Change) -> World {
        let told = if change.is_contradiction() { CONTRADICTED } else { 0 };
        World { row: Some(row(&change.progress)), told: world.told | told, ..world }
    }

    /// Whoever asks for the status.
    fn reconciler(&mut self, at: usize) {
        let world = self.world;
        match world.replicas[at] {
            Replica::Idle if world.claims < CLAIMS => {
                let Some(before) = world.row else { return };
                // Also one whose claimant may be at work still.
                if let Ok(claimed) = claim(record(before), seconds(2), EPOCH, &bridge::lease_end(before)) {
                    let new = row(&claimed.record().progress);
                    let to = World { row: Some(new), claims: world.claims + 1, ..world };
                    self.add("claim", at, to.with(at, Replica::Claimed(new.fence)));
                }
            }
            Replica::Claimed(fence) => {
                let seen = if world.is_visible { Seen::Found } else { Seen::Absent };
                let asked = |seen| Replica::Asked(fence, seen, world.is_settled);
                self.add("ask: answered", at, world.with(at, asked(seen)));
                self.add("ask: error", at, world.with(at, asked(Seen::Error)));
            }
            Replica::Asked(fence, seen, was_settled) => {
                let asked = bridge::asked(fence, was_settled);
                let (label, report) = match seen {
                    Seen::Found => ("status: found", asked.succeeded(draw())),
                    Seen::Error => ("status: nothing", asked.inconclusive(draw())),
                    Seen::Absent if self.is(Wrong::AbsentAtOnce) => {
                        let asked = bridge::asked(fence, true);
                        ("status: absent", bridge::absent(asked, Some(bridge::wrong_rule())))
                    }
                    Seen::Absent => {
                        let rule = self.variant.has_rule.then(bridge::rule);
                        ("status: absent", bridge::absent(asked, rule))
                    }
                };
                let to = self.written(at, &report, label);
                self.add(label, at, to.unwrap_or(world.with(at, Replica::Idle)));
            }
            Replica::Idle
            | Replica::Before(_)
            | Replica::Sent(_)
            | Replica::Answered(..)
            | Replica::SawLate(_) => {}
        }
    }

    /// Whoever asks again about what was decided by absence. Any other answer changes nothing.
    fn second_look(&mut self, at: usize) {
        let world = self.world;
        match (world.replicas[at], world.row) {
            (Replica::Idle, Some(row)) if world.is_visible && !self.is(Wrong::LooksNoMore) => {
                if let Some(look) = second_look(record(row)) {
                    let fence = bridge::row(&look.record().progress).fence;
                    self.add("second look: found", at, world.with(at, Replica::SawLate(fence)));
                }
            }
            (Replica::SawLate(fence), _) => {
                let to = self.written(at, &bridge::executed_late(fence), "record: executed late");
                let to = to.unwrap_or(world.with(at, Replica::Idle));
                self.add("record: executed late", at, to);
            }
            _ => {}
        }
    }

    /// Leases and deadlines.
    fn time(&mut self) {
        let world = self.world;
        let Some(before) = world.row else { return };
        let at_end = bridge::lease_end(before);
        if let Ok(change) = lease_ended(&record(before), draw(), EPOCH, &at_end) {
            if self.is(Wrong::LeaseExecutesAgain) {
                for at in 0..self.variant.replicas() {
                    if world.replicas[at] == Replica::Idle && before.fence < FORWARDS {
                        let again = bridge::forced(before.fence, State::Dispatching);
                        let to = World { row: Some(again), ..world };
                        self.add("lease over: executed again", at, to.with(at, Replica::Before(again.fence)));
                    }
                }
            } else {
                self.add("lease over: unknown", 9, Self::changed(world, &change));
            }
        }
        if let Ok(change) = overdue(&record(before), draw(), EPOCH, &bridge::deadline()) {
            self.add("deadline: attention", 9, Self::changed(world, &change));
        }
    }

    fn upstream(&mut self) {
        let world = self.world;
        for fence in (0..16).filter(|fence| world.on_the_way & 1 << fence != 0) {
            let arrived = World { on_the_way: world.on_the_way & !(1 << fence), ..world };
            let waiting = (0..2).find(|&at| world.replicas[at] == Replica::Sent(fence));
            let answered = |world: World, reply| match waiting {
                Some(at) => world.with(at, Replica::Answered(fence, reply)),
                None => world,
            };
            let effects = if self.is(Wrong::UpstreamRecognises) { 1 } else { (arrived.effects + 1).min(2) };
            let executed = World { effects, ..arrived };
            self.add("upstream executes, 2xx", 9, answered(executed, Reply::Ok));
            self.add("upstream executes, then 5xx", 9, answered(executed, Reply::ServerError));
            self.add("upstream executes, answer lost", 9, executed);
            self.add("upstream refuses, 4xx", 9, answered(arrived, Reply::Refused));
            self.add("upstream 5xx without effect", 9, answered(arrived, Reply::ServerError));
            self.add("request lost", 9, arrived);
        }
        if !world.is_visible && world.effects > 0 {
            self.add("status catches up", 9, World { is_visible: true, ..world });
        }
        let is_open = world.row.is_some_and(|row| row.state.is_open());
        if is_open && !world.is_settled {
            // What a declared `settle` promises.
            let is_true = world.on_the_way == 0
                && world.is_visible == (world.effects > 0)
                && !world.replicas.iter().any(|at| matches!(at, Replica::Before(_) | Replica::Sent(_)));
            if is_true || self.is(Wrong::SettleTooShort) {
                self.add("settle is over", 9, World { is_settled: true, ..world });
            }
        }
    }
}
