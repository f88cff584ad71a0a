//! The shapes of services, errors and closures that the layer fits.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use backstop::engine::failure::FailureKind;
use backstop::{Backstop, BackstopLayer, ProtectedRoute};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower::util::{BoxCloneService, BoxCloneSyncService};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use crate::support::{Shop, description};

fn route() -> ProtectedRoute {
    let shop = Shop::open(description().policy());
    let backstop: Backstop = shop.backstop.clone();
    backstop.route("description").unwrap()
}

/// What any author can do with the result: clone it, send it, box it.
fn answer<S, B>(service: S) -> u16
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    let service = BoxCloneService::new(service.map_response(|response| response.status().as_u16()));
    let request = Request::new(Full::default());
    let mut call = tokio_test::task::spawn(service.clone().oneshot(request));
    match call.poll() {
        Poll::Ready(Ok(status)) => status,
        _ => panic!("no answer"),
    }
}

type Boxed = UnsyncBoxBody<Bytes, BoxError>;

async fn hello(_: Request<Full<Bytes>>) -> Result<Response<Boxed>, BoxError> {
    let body = Full::new(Bytes::from_static(b"hello"));
    Ok(Response::new(UnsyncBoxBody::new(body.map_err(|never: Infallible| match never {}))))
}

#[test]
fn boxed_services_with_boxed_bodies_and_boxed_errors_can_be_protected() {
    let by_error = |error: &BoxError| error.is::<std::io::Error>().then_some(FailureKind::Connect);
    let layer = BackstopLayer::new(route(), by_error);
    assert_eq!(answer(layer.layer(BoxCloneService::new(service_fn(hello)))), 200);
    assert_eq!(answer(layer.layer(BoxCloneSyncService::new(service_fn(hello)))), 200);
    assert_eq!(answer(layer.clone().layer(service_fn(hello))), 200);
}

#[test]
fn an_error_deep_inside_a_boxed_one_can_be_classified() {
    let broken = service_fn(|_: Request<Full<Bytes>>| async {
        Err::<Response<Full<Bytes>>, BoxError>(Box::new(std::io::Error::other("reset")))
    });
    let by_error = |error: &BoxError| error.is::<std::io::Error>().then_some(FailureKind::Reset);
    assert_eq!(answer(BackstopLayer::new(route(), by_error).layer(broken)), 503);
}

/// A service may answer with part of something larger that it holds.
#[test]
fn a_copy_does_not_keep_the_buffer_of_which_its_body_is_a_part() {
    let buffer = Bytes::from(vec![b'x'; 1 << 20]);
    let part = buffer.slice(..100 << 10);
    let shop = Shop::open(description().policy());
    let route = shop.backstop.route("description").unwrap();
    let service = service_fn(move |_: Request<Full<Bytes>>| {
        let part = part.clone();
        async move { Ok::<_, Infallible>(Response::new(Full::new(part))) }
    });
    assert_eq!(answer(BackstopLayer::new(route, |_: &Infallible| None).layer(service)), 200);
    let health = shop.backstop.copies().health();
    assert_eq!((health.entries, health.memory_bytes >= 100 << 10), (1, true));
    assert!(buffer.is_unique(), "1 MiB for a copy of 100 KiB");
}

/// Inside an `async` block the compiler cannot see through a `Box<dyn Error>` and a closure at once; boxed it can be held
/// there, and so in a handler or a spawned task.
#[test]
fn a_protected_service_of_boxed_errors_can_be_used_in_a_task_once_it_is_boxed() {
    fn can_be_spawned(_: impl Future + Send + 'static) {}
    let layer = BackstopLayer::new(route(), |_: &BoxError| None);
    let service = BoxCloneService::new(layer.layer(service_fn(hello)));
    can_be_spawned(async move {
        let answered = service.oneshot(Request::new(Full::default())).await;
        answered.is_ok()
    });
}

/// A classifier may hold anything that can be shared; it need be neither `Clone` nor `Debug`.
#[test]
fn the_layer_is_cloned_and_shown_whatever_its_classifier_holds() {
    struct Neither(Mutex<Vec<String>>);
    let log = Neither(Mutex::new(Vec::new()));
    let layer = BackstopLayer::new(route(), move |error: &BoxError| {
        log.0.lock().unwrap().push(error.to_string());
        None
    });
    assert_eq!(answer(layer.clone().layer(service_fn(hello))), 200);
    assert!(format!("{layer:?}").contains("description"));
}

/// A service that is called without its readiness having been awaited would panic; the layer awaits it.
#[test]
fn the_inner_service_is_ready_whenever_it_is_called() {
    #[derive(Clone)]
    struct Strict(Arc<Mutex<u32>>, bool);
    impl Service<Request<Full<Bytes>>> for Strict {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
            self.1 = true;
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
            assert!(std::mem::take(&mut self.1), "not ready");
            *self.0.lock().unwrap() += 1;
            std::future::ready(Ok(Response::new(Full::default())))
        }
    }
    let calls = Arc::new(Mutex::new(0));
    let service = BackstopLayer::new(route(), |_: &Infallible| None).layer(Strict(Arc::clone(&calls), false));
    assert_eq!((answer(service.clone()), answer(service)), (200, 200));
    assert_eq!(*calls.lock().unwrap(), 2);
}
