//! One tower layer per route.
//!
//! One layer, not a bag of them: the deadline, the limit that also counts alternatives and the owner of failures cut
//! across, and whoever orders independent layers can build an unsafe stack.

use std::sync::Arc;

use tower_layer::Layer;

use crate::protected::ProtectedRoute;
use crate::service::BackstopService;

/// Protects a service with a route's policy.
///
/// Where the service's error is a `Box<dyn Error>`, put the protected service into a
/// [`BoxCloneService`](https://docs.rs/tower/latest/tower/util/struct.BoxCloneService.html) before it is used inside an
/// `async` block that must be `Send`: the compiler cannot yet prove that of a closure over such an error.
pub struct BackstopLayer<C> {
    route: ProtectedRoute,
    classify: Arc<C>,
}

// By hand: what is derived would ask the same of `C`, and a closure is seldom `Debug` and not always `Clone`.
impl<C> Clone for BackstopLayer<C> {
    fn clone(&self) -> Self {
        Self { route: self.route.clone(), classify: Arc::clone(&self.classify) }
    }
}

impl<C> std::fmt::Debug for BackstopLayer<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackstopLayer").field("route", &self.route).finish_non_exhaustive()
    }
}

impl<C> BackstopLayer<C> {
    /// A layer for a route. `classify`, a function from the inner service's error to an optional
    /// [`FailureKind`](backstop_engine::failure::FailureKind), tells which errors are failures of the dependency; all
    /// others go to the caller unchanged.
    ///
    /// `Dns`, `Connect`, `ConnectTimeout` and `Tls` say that no byte of the request can have been sent: a write that fails
    /// so has changed nothing, and withdraws no copy. Whatever may have happened later is one of the other kinds.
    pub fn new(route: ProtectedRoute, classify: C) -> Self {
        Self { route, classify: Arc::new(classify) }
    }
}

impl<S, C> Layer<S> for BackstopLayer<C> {
    type Service = BackstopService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        BackstopService::new(inner, self.route.clone(), Arc::clone(&self.classify))
    }
}
