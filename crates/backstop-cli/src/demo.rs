//! An incident, played on this machine: what clients of a small shop get while its product service fails.
//!
//! Two shops, each a product service and a recommender; the same faults befall both product services at the same moments,
//! and the same schedule of requests is sent to both: to one through Backstop, to the other directly. Every figure is
//! counted in the run. Each product carries the moment at which the shop made it, so the age of every answer is known
//! without believing any header.
//!
//! This is the demonstration for a terminal. [`page`] is the one for a browser, where a visitor breaks the shop by hand.

mod account;
mod board;
mod check;
pub(crate) mod page;
mod script;
mod shop;
mod stage;
mod table;

use std::sync::Arc;
use std::time::Duration;

use backstop_lab::load::{self, Run};
use backstop_policy::Loaded;

use crate::printer::Printer;

use board::Board;
use script::PHASES;
use stage::Stage;

/// Whether every answer was one that the policy accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    AsAccepted,
    Forbidden,
}

type Failed = Box<dyn std::error::Error>;

/// How often the table is drawn.
const FRAME: Duration = Duration::from_millis(200);
/// After the last request was due, the longest wait for answers.
const DRAIN: Duration = Duration::from_secs(2);

/// Plays the incident from beginning to end.
pub(crate) fn play(loaded: Loaded, rate: u32, printer: Printer) -> Result<Verdict, Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let stage = Stage::set(loaded).await?;
        let verdict = incident(&stage, rate, printer).await;
        stage.strike().await?;
        verdict
    })
}

async fn incident(stage: &Stage, rate: u32, printer: Printer) -> Result<Verdict, Failed> {
    let board = Arc::new(Board::new(stage.max_age()));
    introduce(stage, rate, printer);
    let total: Duration = PHASES.iter().map(|phase| phase.lasts).sum();
    let runs = [
        load::start(stage.through_backstop(rate, total, &board))?,
        load::start(stage.direct_products(rate, total, &board))?,
        load::start(stage.direct_recommendations(rate, total, &board))?,
    ];
    let mut table = table::Table::new(printer, total);
    let begun = tokio::time::Instant::now();
    let mut ends = begun;
    for (number, phase) in PHASES.iter().enumerate() {
        ends += phase.lasts;
        stage.befall(phase).await?;
        while tokio::time::Instant::now() < ends {
            let next = (tokio::time::Instant::now() + FRAME).min(ends);
            tokio::time::sleep_until(next).await;
            table.draw(&board, number, begun.elapsed());
        }
        table.phase_over(&board, number);
    }
    for run in runs {
        finish(run).await?;
    }
    table.clear();
    let calls = stage.calls();
    Ok(account::tell(&board, &calls, printer))
}

async fn finish(run: Run) -> Result<(), Failed> {
    match tokio::time::timeout(DRAIN + Duration::from_secs(8), run.finish()).await {
        Ok(finished) => {
            finished?;
            Ok(())
        }
        Err(_) => Err("the load did not end in time".into()),
    }
}

fn introduce(stage: &Stage, rate: u32, printer: Printer) {
    let seconds: u64 = PHASES.iter().map(|phase| phase.lasts.as_secs()).sum();
    printer.line(format_args!(
        "A shop behind Backstop on http://{}, metrics on http://{}/metrics; the same shop without it beside.",
        stage.gateway(),
        stage.admin()
    ));
    printer.line(format_args!(
        "{rate} requests/s to each for {seconds} s. Its services will fail in three ways. Try it meanwhile:"
    ));
    printer.line(format_args!("  curl -i -H 'Accept-Language: es' http://{}/products/1\n", stage.gateway()));
}
