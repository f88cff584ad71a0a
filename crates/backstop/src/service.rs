//! A tower service whose answers are backed by a route's policy.
//!
//! It is always ready: admission is decided in `call`, at once, and not by waiting in `poll_ready`, where no deadline
//! runs. The inner service's own readiness is awaited inside the deadline.
//!
//! Requests have an [`http_body::Body`], because only it tells whether there is content: what is answered to content of a
//! request's own is neither kept nor repeated.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{Attempt, Places};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::abandoned::UnderWay;
use crate::body::ReplyBody;
use crate::clock::Clock;
use crate::exchange::{Incoming, respond};
use crate::protected::ProtectedRoute;
use crate::upstream::{BrokenOff, CallError, Progress, Upstream};

/// The inner service, protected. `R` is whether a request may be sent twice: [`Repeating`] or [`Once`].
pub struct BackstopService<S, C, R = Repeating> {
    inner: S,
    route: ProtectedRoute,
    classify: Arc<C>,
    of_body: BodyErrors,
    entropy: Arc<Entropy>,
    repeats: PhantomData<fn() -> R>,
}

/// An error of a body, whatever its type.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// What kind of failure an error of an answer's body is; `None` is a body that just ends too soon.
#[derive(Clone, Default)]
pub(crate) struct BodyErrors(Option<Arc<OfBody>>);

type OfBody = dyn Fn(&(dyn Error + Send + Sync + 'static)) -> FailureKind + Send + Sync;

impl BodyErrors {
    pub(crate) fn new(
        classify: impl Fn(&(dyn Error + Send + Sync + 'static)) -> FailureKind + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(classify)))
    }

    fn broken_off(&self, error: BoxError) -> BrokenOff {
        let kind = self.0.as_ref().map(|classify| classify(&*error));
        // Part of the answer had come: what says that nothing was ever sent cannot be meant.
        let kind = kind.filter(|kind| kind.sent() != Sent::No).unwrap_or(FailureKind::Incomplete);
        BrokenOff::Dependency(Failure::new(kind, Phase::Body, Sent::Maybe), Some(error.into()))
    }
}

impl std::fmt::Debug for BodyErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyErrors").finish_non_exhaustive()
    }
}

/// What a request without content is sent with a second time.
pub trait Repeats<B>: Send + Sync + 'static {
    /// A body without content; `None` if no request is sent twice.
    fn no_content() -> Option<B>;
}

/// Requests without content may be sent twice, the second time with the body's `Default`.
#[derive(Clone, Copy, Debug)]
pub struct Repeating;

/// No request is sent twice.
#[derive(Clone, Copy, Debug)]
pub struct Once;

impl<B: Default> Repeats<B> for Repeating {
    fn no_content() -> Option<B> {
        Some(B::default())
    }
}

impl<B> Repeats<B> for Once {
    fn no_content() -> Option<B> {
        None
    }
}

// By hand: what is derived would ask the same of `C`, and a closure is seldom `Debug` and not always `Clone`.
impl<S: Clone, C, R> Clone for BackstopService<S, C, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            route: self.route.clone(),
            classify: Arc::clone(&self.classify),
            of_body: self.of_body.clone(),
            entropy: Arc::clone(&self.entropy),
            repeats: PhantomData,
        }
    }
}

impl<S: std::fmt::Debug, C, R> std::fmt::Debug for BackstopService<S, C, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackstopService")
            .field("inner", &self.inner)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

/// What distinguishes one request's chance from another's: a counter behind a keyed hash.
#[derive(Debug)]
pub(crate) struct Entropy {
    key: std::hash::RandomState,
    count: AtomicU64,
}

impl Entropy {
    pub(crate) fn new() -> Self {
        Self { key: std::hash::RandomState::new(), count: AtomicU64::new(0) }
    }

    pub(crate) fn draw(&self) -> u64 {
        std::hash::BuildHasher::hash_one(&self.key, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

impl<S, C, R> BackstopService<S, C, R> {
    pub(crate) fn new(inner: S, route: ProtectedRoute, classify: Arc<C>, of_body: BodyErrors) -> Self {
        Self { inner, route, classify, of_body, entropy: Arc::new(Entropy::new()), repeats: PhantomData }
    }
}

impl<S, C, R, RequestBody, ResponseBody> Service<Request<RequestBody>> for BackstopService<S, C, R>
where
    S: Service<Request<RequestBody>, Response = Response<ResponseBody>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send,
    R: Repeats<RequestBody>,
    C: Fn(&S::Error) -> Option<FailureKind> + Send + Sync + 'static,
    RequestBody: Body + Send + 'static,
    ResponseBody: Body<Data = Bytes> + Unpin + Send + 'static,
    ResponseBody::Error: Into<BoxError>,
{
    type Response = Response<ReplyBody<PermitBody<ResponseBody>>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let route = self.route.clone();
        let entropy = self.entropy.draw();
        let upstream = Inner {
            service: Mutex::new(self.inner.clone()),
            classify: Arc::clone(&self.classify),
            of_body: self.of_body.clone(),
            clock: route.inner.shared.clock.clone(),
            repeats: PhantomData::<fn() -> R>,
        };
        Box::pin(async move { respond(&route, Incoming { request, upload: None, entropy }, &upstream).await })
    }
}

/// The inner service as an upstream. The mutex is never contended: it lets services that are not `Sync` be used.
struct Inner<S, C, R> {
    service: Mutex<S>,
    classify: Arc<C>,
    of_body: BodyErrors,
    clock: Clock,
    repeats: PhantomData<fn() -> R>,
}

impl<S, C, R, RequestBody, ResponseBody> Upstream<RequestBody> for Inner<S, C, R>
where
    S: Service<Request<RequestBody>, Response = Response<ResponseBody>> + Clone,
    S::Future: Send + 'static,
    C: Fn(&S::Error) -> Option<FailureKind>,
    R: Repeats<RequestBody>,
    ResponseBody: Body<Data = Bytes>,
    ResponseBody::Error: Into<BoxError>,
{
    type Body = PermitBody<ResponseBody>;
    type Error = S::Error;

    async fn call(
        &self,
        attempt: Attempt,
        request: Request<RequestBody>,
        progress: &Progress,
    ) -> Result<Response<Self::Body>, CallError<S::Error>> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let classify = |error: S::Error, phase: Phase, sent: Sent| match (self.classify)(&error) {
            // A service is one piece: only the kind tells how far it came.
            Some(kind) if kind.sent() == Sent::No => {
                CallError::Failed(Failure::new(kind, Phase::Connect, Sent::No))
            }
            Some(kind) => CallError::Failed(Failure::new(kind, phase, sent)),
            None => CallError::Unclassified(error),
        };
        // Getting ready is getting a connection, as far as a service tells.
        progress.enter(Phase::Connect);
        poll_fn(|context| service.poll_ready(context))
            .await
            .map_err(|error| classify(error, Phase::Connect, Sent::No))?;
        progress.enter(Phase::Head);
        let (answer, places) = UnderWay::begin(service.call(request), attempt, self.clock.clone()).await;
        let response = answer.map_err(|error| classify(error, Phase::Head, Sent::Maybe))?;
        let of_body = self.of_body.clone();
        Ok(response.map(|body| PermitBody { body, places: Some(places), of_body }))
    }

    fn no_content(&self) -> Option<RequestBody> {
        R::no_content()
    }
}

pin_project! {
    /// The inner service's body; the place at the dependency is kept until it ends.
    #[derive(Debug)]
    pub struct PermitBody<B> {
        #[pin]
        body: B,
        places: Option<Places>,
        of_body: BodyErrors,
    }
}

impl<B: Body<Data = Bytes>> Body for PermitBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(context));
        // Whoever sends the body need not ask once more after its last frame.
        if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
            *this.places = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| this.of_body.broken_off(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
