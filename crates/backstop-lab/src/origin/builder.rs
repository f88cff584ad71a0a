//! How an origin is set up before it starts.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use super::{Arrival, Behaviour, ExpectContinue, Limits, Origin, control, observer::Observer, server};

/// Settings of an origin that is not started yet.
#[derive(Clone, Debug)]
pub struct Builder {
    addr: SocketAddr,
    limits: Limits,
    raw: bool,
    expect_continue: ExpectContinue,
    default: Option<Behaviour>,
    control: Option<SocketAddr>,
    observer: Option<Observer>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            limits: Limits::default(),
            raw: false,
            expect_continue: ExpectContinue::AtOnce,
            default: None,
            control: None,
            observer: None,
        }
    }
}

impl Builder {
    /// The address to bind. Default: a free port of 127.0.0.1.
    #[must_use]
    pub fn addr(mut self, addr: SocketAddr) -> Self {
        self.addr = addr;
        self
    }

    /// Bounds of what is read and kept. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps the bytes of every connection verbatim. Default: off.
    #[must_use]
    pub fn record_raw(mut self, raw: bool) -> Self {
        self.raw = raw;
        self
    }

    /// How `Expect: 100-continue` is answered. Default: at once.
    #[must_use]
    pub fn expect_continue(mut self, rule: ExpectContinue) -> Self {
        self.expect_continue = rule;
        self
    }

    /// The behaviour where no rule holds. Default: 200 with `{"ok":true}`.
    #[must_use]
    pub fn default_behaviour(mut self, behaviour: impl Into<Behaviour>) -> Self {
        self.default = Some(behaviour.into());
        self
    }

    /// Tells `observe` of every request when its head has arrived or has broken off. It runs on the origin's own thread and
    /// must not block it. Default: nobody is told.
    #[must_use]
    pub fn observe(mut self, observe: impl Fn(Arrival<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Observer::new(observe));
        self
    }

    /// Also opens the control face at `addr` (port 0 for a free one). Default: none.
    #[must_use]
    pub fn control(mut self, addr: SocketAddr) -> Self {
        self.control = Some(addr);
        self
    }

    /// Starts the origin on its own thread. It listens when this returns.
    ///
    /// # Errors
    ///
    /// When an address cannot be bound, or the thread or its runtime cannot be made.
    pub async fn start(self) -> io::Result<Origin> {
        let origin = self.start_without_control().await?;
        if let Some(addr) = self.control {
            let builder = Self { addr, ..Self::default() };
            let face = builder.start_without_control().await?;
            face.default(control::behaviour(&origin));
            origin.keep_control(face);
        }
        Ok(origin)
    }

    async fn start_without_control(&self) -> io::Result<Origin> {
        let shared =
            Arc::new(server::Shared::new(self.limits, self.raw, self.expect_continue, self.observer.clone()));
        if let Some(behaviour) = &self.default {
            shared.rules().set_default(behaviour.clone());
        }
        let (addr, commands, thread) = server::start(self.addr, Arc::clone(&shared)).await?;
        Ok(Origin::running(addr, shared, commands, thread))
    }
}
