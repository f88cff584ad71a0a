//! The kinds of work, and how one round of one kind is measured.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::load::{self, Kind, Plan};
use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin};

use crate::process::Failed;
use crate::proxies::Proxy;

/// Requests per second; below what load and origin can do on their core.
const RATE: f64 = 4000.0;
const ROUND: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);
/// Places at the limit in the work that is mostly refused.
pub(crate) const LIMIT: u32 = 8;
/// What the origin takes in that work: 8 places of 20 ms are 400 answers a second, a tenth of the load.
const SLOW: Duration = Duration::from_millis(20);
const CONNECTIONS: usize = 64;
const TARGETS: u32 = 100;
const BOUND: Duration = Duration::from_secs(5);

/// What a proxy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Passed on as it comes.
    Pass,
    /// Passed on under the whole policy of a public read: held back until whole, checked, kept as the copy.
    Read,
    Copies,
    Refusal,
}

pub(crate) const WORKS: [Work; 4] = [Work::Pass, Work::Read, Work::Copies, Work::Refusal];

impl Work {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Work::Pass => "pass, 1 KiB, keep-alive",
            Work::Read => "pass, checked and kept as a copy",
            Work::Copies => "outage answered from copies, 1 KiB",
            Work::Refusal => "refusal at the limit",
        }
    }

    pub(crate) const fn wanted(self) -> &'static str {
        match self {
            Work::Pass | Work::Read => "passed",
            Work::Copies => "from copies",
            Work::Refusal => "refused",
        }
    }

    const fn wanted_status(self) -> u16 {
        match self {
            Work::Pass | Work::Read | Work::Copies => 200,
            Work::Refusal => 503,
        }
    }
}

/// One round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) cpu_us_per_answer: f64,
    pub(crate) answers: u64,
    pub(crate) wanted: u64,
}

/// Starts the origin, warms the proxy up, and measures one round.
pub(crate) async fn measure(work: Work, proxy: &Proxy) -> Result<Measured, Failed> {
    let origin = Origin::builder().addr(proxy.origin).start().await?;
    // A JSON document of exactly 1 KiB.
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(1024 - 11));
    let answer = Answer::json(body);
    let behaviour: Behaviour = if work == Work::Refusal { answer.delay(SLOW) } else { answer.into() };
    origin.on(Matcher::any(), behaviour);
    wait_until_it_answers(proxy).await?;
    for target in targets() {
        let _warmed = client::get(proxy.listen, &target, &[]).await?;
    }
    if work == Work::Copies {
        // Old enough for both, then gone.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        origin.refuse().await?;
        origin.close_connections();
    }
    load::run(plan(proxy, WARM_UP)).await?;
    let before = proxy.process.cpu()?;
    let summary = load::run(plan(proxy, ROUND)).await?;
    let cpu = proxy.process.cpu()?.saturating_sub(before);
    let total = &summary.total;
    if total.failed + total.excess > 0 {
        return Err(
            format!("{work:?}: {} requests failed and {} were not sent", total.failed, total.excess).into()
        );
    }
    let wanted = total.by_status.get(&work.wanted_status()).copied().unwrap_or(0);
    Ok(Measured {
        cpu_us_per_answer: cpu.as_secs_f64() * 1e6 / total.answered as f64,
        answers: total.answered,
        wanted,
    })
}

fn targets() -> impl Iterator<Item = String> {
    (0..TARGETS).map(|number| format!("/item/{number}"))
}

fn plan(proxy: &Proxy, lasts: Duration) -> Plan {
    let kind = Kind::get("/item/0").targets(targets());
    Plan::new(proxy.listen, RATE, lasts).connections(CONNECTIONS).kind(kind)
}

async fn wait_until_it_answers(proxy: &Proxy) -> Result<(), Failed> {
    let answers = async {
        while client::get(proxy.listen, "/item/0", &[]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(BOUND, answers).await.map_err(|_| "the proxy does not answer".into())
}
