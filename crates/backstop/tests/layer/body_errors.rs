//! An answer whose body ends in an error of its own.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use backstop::builder;
use backstop::engine::failure::{Cause, FailureKind, Phase, Sent};
use backstop::upstream::BrokenOff;
use backstop::{BackstopLayer, PermitBody, ProtectedRoute, ReplyBody};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{DEADLINE, Shop, description};

/// A body that breaks off with this error.
struct Breaks(Option<io::Error>);

impl Body for Breaks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

/// What the layer makes of such a body, where its errors are told to be of this kind.
fn answered(route: ProtectedRoute, kind: Option<FailureKind>) -> Response<ReplyBody<PermitBody<Breaks>>> {
    let layer = BackstopLayer::new(route, |_: &Infallible| None);
    let layer = match kind {
        None => layer,
        Some(kind) => layer.body_errors(move |error| {
            assert_eq!(error.downcast_ref::<io::Error>().map(ToString::to_string).as_deref(), Some("gone"));
            kind
        }),
    };
    let service = service_fn(|_: Request<Full<Bytes>>| async {
        Ok::<_, Infallible>(Response::new(Breaks(Some(io::Error::other("gone")))))
    });
    let mut call = tokio_test::task::spawn(layer.layer(service).oneshot(Request::new(Full::default())));
    match call.poll() {
        Poll::Ready(Ok(answer)) => answer,
        Poll::Ready(Err(never)) => match never {},
        Poll::Pending => panic!("no answer"),
    }
}

/// A body's error can come only after something was sent: what says otherwise is not believed.
#[test]
fn an_error_of_a_body_is_the_failure_that_the_layer_is_told() {
    for (kind, cause) in [
        (None, "incomplete"),
        (Some(FailureKind::Reset), "reset"),
        (Some(FailureKind::ReadTimeout), "read_timeout"),
        (Some(FailureKind::Protocol), "protocol"),
        (Some(FailureKind::Connect), "incomplete"),
    ] {
        let shop = Shop::open(description().policy());
        let answer = answered(shop.backstop.route("description").unwrap(), kind);
        let told = answer.headers()["backstop"].to_str().unwrap();
        assert_eq!(told, format!("outcome=rejected, reason=missing, cause={cause}"));
    }
}

/// Whoever sends a streamed answer learns what the service said.
#[test]
fn the_error_of_a_body_is_not_lost() {
    let shop = Shop::open(builder::direct("rest", DEADLINE).in_flight(1).policy());
    let answer = answered(shop.backstop.route("rest").unwrap(), Some(FailureKind::Reset));
    let mut context = Context::from_waker(std::task::Waker::noop());
    let mut body = pin!(answer.into_body());
    let Poll::Ready(Some(Err(broken))) = body.as_mut().poll_frame(&mut context) else { panic!("it breaks") };
    let source = broken.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(ToString::to_string).as_deref(), Some("gone"));
    assert_eq!(broken.to_string(), "the answer of the service behind broke off: reset");
    let BrokenOff::Dependency(failure, _) = broken else { panic!("no client breaks off here") };
    assert_eq!((failure.phase, failure.sent), (Phase::Body, Sent::Maybe));
    assert_eq!(Cause::Failed(failure).token(), "reset");
}
