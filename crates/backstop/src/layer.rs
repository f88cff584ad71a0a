//! One tower layer per route.
//!
//! One layer, not a bag of them: the deadline, the limit that also counts alternatives and the owner of failures cut
//! across, and whoever orders independent layers can build an unsafe stack.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use backstop_engine::failure::FailureKind;
use tower_layer::Layer;

use crate::protected::ProtectedRoute;
use crate::service::{BackstopService, BodyErrors, Once, Repeating};

/// Protects a service with a route's policy.
///
/// Where the service's error is a `Box<dyn Error>`, put the protected service into a
/// [`BoxCloneService`](https://docs.rs/tower/latest/tower/util/struct.BoxCloneService.html) before it is used inside an
/// `async` block that must be `Send`: the compiler cannot yet prove that of a closure over such an error.
///
/// **Retries.** Where the route's policy has [`retry`](crate::builder::Builder::retry), a read without content is sent a
/// second time with the request body's `Default`, which every usual body type has, and which is empty. A body type that has
/// none needs [`once`](BackstopLayer::once).
///
/// **Another dependency** never stands in here, whatever the policy says of one: the layer reaches the service inside alone,
/// and what that failed to answer is not asked of it under another's name.
///
/// **Calls that nobody waits for any more**, because their time is over or the client has left, go on in a task of the tokio
/// runtime and occupy their places at the dependency and its resources until the inner service has answered, and no longer
/// than [`abandon_hold`](crate::builder::Builder::abandon_hold) (by default the rest of the deadline): whatever they have
/// asked for is still being worked on. A hold of zero ends them at once, and so does the lack of a runtime. What is left of
/// an answer whose head has come is not waited for: dropping its body ends it.
pub struct BackstopLayer<C, R = Repeating> {
    route: ProtectedRoute,
    classify: Arc<C>,
    of_body: BodyErrors,
    repeats: PhantomData<fn() -> R>,
}

// By hand: what is derived would ask the same of `C`, and a closure is seldom `Debug` and not always `Clone`.
impl<C, R> Clone for BackstopLayer<C, R> {
    fn clone(&self) -> Self {
        let (classify, of_body) = (Arc::clone(&self.classify), self.of_body.clone());
        Self { route: self.route.clone(), classify, of_body, repeats: PhantomData }
    }
}

impl<C, R> std::fmt::Debug for BackstopLayer<C, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackstopLayer").field("route", &self.route).finish_non_exhaustive()
    }
}

impl<C> BackstopLayer<C> {
    /// A layer for a route. `classify`, a function from the inner service's error to an optional
    /// [`FailureKind`], tells which errors are failures of the dependency; all
    /// others go to the caller unchanged. Of the errors of its answers' bodies [`body_errors`](BackstopLayer::body_errors) tells.
    ///
    /// `Dns`, `Connect`, `ConnectTimeout` and `Tls` say that no byte of the request can have been sent: a write that fails
    /// so has changed nothing, and withdraws no copy. Whatever may have happened later is one of the other kinds.
    pub fn new(route: ProtectedRoute, classify: C) -> Self {
        Self { route, classify: Arc::new(classify), of_body: BodyErrors::default(), repeats: PhantomData }
    }

    /// Sends every request once, whatever the policy says: for request bodies without a `Default`.
    pub fn once(self) -> BackstopLayer<C, Once> {
        let Self { route, classify, of_body, repeats: _ } = self;
        BackstopLayer { route, classify, of_body, repeats: PhantomData }
    }
}

impl<C, R> BackstopLayer<C, R> {
    /// Tells which failure an error of an answer's body is. Default: all are
    /// [`Incomplete`](backstop_engine::failure::FailureKind::Incomplete), and so is what is called a failure before
    /// anything was sent, which a body's error cannot be.
    ///
    /// Such an error never reaches the caller as it is, because the answer has begun: an answer that is held back until it
    /// is complete gives way to its alternative, and one that streams ends in
    /// [`BrokenOff`](crate::upstream::BrokenOff), whose source it is.
    pub fn body_errors(
        mut self,
        classify: impl Fn(&(dyn Error + Send + Sync + 'static)) -> FailureKind + Send + Sync + 'static,
    ) -> Self {
        self.of_body = BodyErrors::new(classify);
        self
    }
}

impl<S, C, R> Layer<S> for BackstopLayer<C, R> {
    type Service = BackstopService<S, C, R>;

    fn layer(&self, inner: S) -> Self::Service {
        let (classify, of_body) = (Arc::clone(&self.classify), self.of_body.clone());
        BackstopService::new(inner, self.route.clone(), classify, of_body)
    }
}
