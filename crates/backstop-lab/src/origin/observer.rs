//! Somebody who is told of every request as soon as it counts, before it is known whether the rest of it comes.

use std::{fmt, sync::Arc};

use super::Request;

/// What began to arrive.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<'a> {
    /// A whole head. The body may still be on its way, and may never come to its end.
    Head(&'a Request),
    /// A head that broke off: these bytes came, at least one, and nothing more will.
    CutHead(&'a [u8]),
}

/// Called with every arrival, on the origin's own thread, which it must not block.
#[derive(Clone)]
pub(crate) struct Observer(Arc<dyn Fn(Arrival<'_>) + Send + Sync>);

impl Observer {
    pub(crate) fn new(observe: impl Fn(Arrival<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(crate) fn tell(&self, arrival: Arrival<'_>) {
        (self.0)(arrival);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Observer")
    }
}
