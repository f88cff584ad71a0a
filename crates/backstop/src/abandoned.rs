//! A call of an inner service that nobody may be waiting for any more.
//!
//! Dropping a future ends our part of a call and not the work that it has set going somewhere. So a call that is dropped
//! before it has answered goes on by itself, with its places, until it answers or its hold is over.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop_engine::flow::{Attempt, Places};
use backstop_engine::time::Mono;
use tokio::runtime::Handle;

use crate::clock::Clock;
use crate::driver::within;

/// A call under way. It ends with what it came to and with its places.
pub(crate) struct UnderWay<F: Future + Send + 'static> {
    call: Option<(Pin<Box<F>>, Places)>,
    clock: Clock,
    end: Mono,
    hold: Option<Duration>,
}

impl<F: Future + Send + 'static> UnderWay<F> {
    pub(crate) fn begin(call: F, attempt: Attempt, clock: Clock) -> Self {
        let Attempt { places, end, abandon_hold, .. } = attempt;
        Self { call: Some((Box::pin(call), places)), clock, end, hold: abandon_hold }
    }
}

impl<F: Future + Send + 'static> Future for UnderWay<F> {
    type Output = (F::Output, Places);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out for as long as it is polled: what panics in there is over and does not go on by itself.
        let Some((mut call, places)) = self.call.take() else { return Poll::Pending };
        let polled = call.as_mut().poll(context);
        if polled.is_pending() {
            self.call = Some((call, places));
            return Poll::Pending;
        }
        Poll::Ready((ready!(polled), places))
    }
}

impl<F: Future + Send + 'static> Drop for UnderWay<F> {
    fn drop(&mut self) {
        let Some((call, places)) = self.call.take() else { return };
        let now = self.clock.mono();
        let until = self.hold.map_or(self.end, |hold| now.after(hold));
        if until <= now || std::thread::panicking() {
            return;
        }
        // Without a runtime nothing can go on: then the call ends here.
        if let Ok(runtime) = Handle::try_current() {
            let clock = self.clock.clone();
            runtime.spawn(async move {
                let _answer = within(call, &clock, until).await;
                drop(places);
            });
        }
    }
}
