//! The demo as a page: a shop behind a plain proxy and the same shop behind Backstop, side by side, broken by hand.
//!
//! - **Two equal sets of services** ([`services`]), hit by the same faults at the same moments ([`world`]). Nothing is installed: the
//!   shared cache and the database are parts of the lab.
//! - **The same schedule of requests** to both ([`traffic`]), open loop and bounded, by clients of one kind.
//! - **What clients got is judged by what is in it** ([`judge`]) and counted ([`record`]); what services received is counted by
//!   themselves. The page shows these counts ([`state`]) and nothing else: no figure is written beforehand.
//! - **One page on a loopback port** ([`web`]), whole without JavaScript, that only its own buttons can operate ([`own`]).

mod button;
mod judge;
mod lines;
mod own;
mod record;
mod services;
mod state;
mod traffic;
mod view;
mod wallet;
mod web;
mod world;

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use backstop_policy::FileSource;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::printer::Printer;

use super::Failed;
use record::Side;
use world::World;

/// The policy that is shown: part of the binary, so that the demo needs nothing else.
pub(super) const POLICY: &str = include_str!("../../../../examples/demo.toml");
const POLICY_FILE: &str = "examples/demo.toml";
/// The general answer that it names.
pub(super) const PREPARED: &str = include_str!("../../../../examples/general-recommendations.json");
/// How long it runs where nobody watches and nothing else was said.
const UNWATCHED: Duration = Duration::from_secs(60);

struct BuiltIn;

impl FileSource for BuiltIn {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("general-recommendations.json") => Ok(PREPARED.as_bytes().to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

/// Serves the page until it is stopped, or for so long.
pub(crate) fn serve(lasts: Option<Duration>, opens_browser: bool, printer: Printer) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        // Before anything is bound: a signal that comes during the start must not be lost.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let loaded = backstop_policy::parse(POLICY, POLICY_FILE, &BuiltIn)
            .map_err(|diagnostics| backstop_policy::render_human(&diagnostics, POLICY, false))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let world = Arc::new(World::open(loaded).await?);
        let address = listener.local_addr()?;
        let lasts = lasts.or((!printer.is_terminal()).then_some(UNWATCHED));
        tell(&world, &format!("http://{address}/"), lasts, printer);
        if opens_browser && printer.is_terminal() && has_display() {
            open_browser(&format!("http://{address}/"));
        }
        let over = async {
            match lasts {
                Some(lasts) => tokio::time::sleep(lasts).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            served = axum::serve(listener, web::app(Arc::clone(&world), address)) => served?,
            () = traffic::keep_going(&world) => {}
            () = over => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        account(&world, printer);
        world.close().await
    })
}

fn tell(world: &World, page: &str, lasts: Option<Duration>, printer: Printer) {
    printer.line(format_args!("The demo's page: {page}"));
    printer.line(format_args!(
        "A shop behind a plain proxy on http://{}, the same behind Backstop on http://{} (status page: http://{}/).",
        world.address(Side::Plain),
        world.address(Side::Backstop),
        world.admin()
    ));
    match lasts {
        Some(lasts) => printer.line(format_args!(
            "It ends after {} s, or with Ctrl-C. `--for SECONDS` says otherwise; `--terminal` plays an incident here instead.",
            lasts.as_secs()
        )),
        None => printer.line(format_args!("Ctrl-C ends it. `--terminal` plays an incident here instead.")),
    }
}

/// What was counted, for whoever did not watch.
fn account(world: &World, printer: Printer) {
    let state = world.state();
    for side in [&state.plain, &state.backstop] {
        let counted = &side.in_all;
        if counted.answers == 0 {
            printer.line(format_args!("{}: no answers yet", side.name));
            continue;
        }
        printer.line(format_args!(
            "{}: {} answers counted, HTTP 200: {} %, normal: {} %; payments wanted {}, made {}",
            side.name,
            counted.answers,
            counted.status_200_percent,
            counted.normal_percent,
            side.payments.wanted,
            side.payments.made
        ));
    }
}

fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The address is printed all the same, so a browser that does not open is no error.
fn open_browser(page: &str) {
    let quiet = Stdio::null;
    let opening = Command::new("xdg-open").arg(page).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    if let Ok(mut opening) = opening {
        // Waited for aside, so that nothing of it is left behind.
        std::thread::spawn(move || opening.wait());
    }
}
