//! The steps of a request, for whoever asks why it got what it got.
//!
//! A [`Recorder`] as an extension of a request has its steps recorded, those of its parts, and those of the read for many
//! that it has made. Without one nothing is recorded and nothing is allocated.
//!
//! Each flow leaves one [`Walk`] when it has decided, or when it is dropped before: a part that is not waited for any more
//! has been somewhere all the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstop_engine::flow::{Decision, Flow, Trace, TraceEntry};
use backstop_engine::policy::RouteId;
use backstop_engine::time::Mono;
use http::Extensions;

/// Has the steps of a request recorded, as an extension of the request. Clones record into one list.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Walk>>>);

/// What one flow went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Its route.
    pub route: RouteId,
    /// On whose behalf it ran.
    pub role: Role,
    /// When it began.
    pub begun: Mono,
    /// Its steps, in order.
    pub entries: Vec<TraceEntry>,
    /// Whether it came to a decision.
    pub has_decided: bool,
}

/// On whose behalf a flow runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client's request.
    Request,
    /// A part of a composed answer.
    Part,
    /// Everybody who asks for the same.
    Fill,
}

impl Recorder {
    /// What was recorded so far, in the order in which the flows began.
    pub fn walks(&self) -> Vec<Walk> {
        let mut walks = self.lock().clone();
        walks.sort_by_key(|walk| (walk.begun, walk.role != Role::Request));
        walks
    }

    fn push(&self, walk: Walk) {
        self.lock().push(walk);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Walk>> {
        // Walks are plain data: whoever panicked while holding them left them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A flow whose steps are recorded, if anybody wants them.
#[derive(Debug)]
pub(crate) struct Walking {
    pub(crate) flow: Flow,
    route: RouteId,
    role: Role,
    recorder: Option<Recorder>,
}

impl Walking {
    /// The flow that is begun with this trace.
    pub(crate) fn begin(
        extensions: &Extensions,
        route: RouteId,
        role: Role,
        begin: impl FnOnce(Trace) -> Flow,
    ) -> Self {
        let recorder = extensions.get::<Recorder>().cloned();
        let trace = if recorder.is_some() { Trace::on() } else { Trace::off() };
        Self { flow: begin(trace), route, role, recorder }
    }

    /// It has decided.
    pub(crate) fn decided(&self, decision: &mut Decision) {
        if self.recorder.is_some() {
            self.leave(&std::mem::take(&mut decision.trace), true);
        }
    }

    fn leave(&self, trace: &Trace, has_decided: bool) {
        let Some(recorder) = &self.recorder else { return };
        let (route, role, begun) = (self.route, self.role, self.flow.begun().mono);
        recorder.push(Walk { route, role, begun, entries: trace.entries().to_vec(), has_decided });
    }
}

impl Drop for Walking {
    fn drop(&mut self) {
        // Once it has decided its steps are the decision's.
        if !self.flow.trace().entries().is_empty() {
            self.leave(self.flow.trace(), false);
        }
    }
}
