//! The real gateway, in this process, by the policy that a drill gives it.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::Instant;

use backstop::clock::Clock;
use backstop_engine::time::{BootId, Mono, Wall, WallTrust};
use backstop_gateway::Gateway;
use backstop_lab::drill::{Running, Stage, StageError, Starting};
use backstop_policy::Loaded;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Starts gateways in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InProcess;

/// How far a clock is turned back.
const BACK: Duration = Duration::from_secs(3600);
/// How often a clock that was turned back is moved on.
const BEAT: Duration = Duration::from_millis(2);

impl Stage for InProcess {
    fn start(&self, policy: Loaded, behind: bool) -> Starting<'_, Box<dyn Running>> {
        Box::pin(async move {
            let (clock, beat) = if behind { turned_back()? } else { (Clock::system()?, None) };
            let gateway = Gateway::bind(&policy, &clock)?;
            let address = *gateway.bound()?.listen.first().ok_or("the gateway listens nowhere")?;
            let (stop, stopped) = oneshot::channel();
            let serving = tokio::spawn(gateway.run(async {
                let _stopped_or_gone = stopped.await;
            }));
            Ok(Box::new(Served { address, stop, serving, beat }) as Box<dyn Running>)
        })
    }

    fn can_turn_back(&self) -> bool {
        true
    }
}

/// A clock of another boot whose date is an hour behind, and which goes on from there.
fn turned_back() -> Result<(Clock, Option<JoinHandle<()>>), StageError> {
    let mut start = Clock::system()?.now();
    let wall = start.wall.as_unix_ns().saturating_sub(i64::try_from(BACK.as_nanos()).unwrap_or(i64::MAX));
    start.wall = Wall::from_unix_ns(wall);
    start.mono = Mono::from_ns(1_000_000_000);
    start.boot = BootId([0xd5; 16]);
    start.wall_trust = WallTrust::Synchronised;
    let (clock, hand) = Clock::manual(start);
    let beat = tokio::spawn(async move {
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(BEAT).await;
            let now = Instant::now();
            hand.advance(now - last);
            last = now;
        }
    });
    Ok((clock, Some(beat)))
}

struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
    beat: Option<JoinHandle<()>>,
}

impl Running for Served {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn stop(self: Box<Self>) -> Starting<'static, ()> {
        Box::pin(async move {
            // Its end may also have come early, with an error to tell.
            let _still_there = self.stop.send(());
            let served = self.serving.await;
            if let Some(beat) = self.beat {
                beat.abort();
            }
            served??;
            Ok(())
        })
    }
}
