//! `backstop run POLICY`.

use std::fmt::Display;

use backstop_gateway::{BindError, Gateway, Reopen};
use backstop_policy::Loaded;
use backstop_store::{DiskState, OpenReport};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Run;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::{logs, panics};

/// Serves a policy until SIGTERM or SIGINT. A second one ends at once.
pub(crate) fn run(arguments: &Run, printer: Printer) -> Exit {
    let loaded = match backstop_policy::load(&arguments.policy) {
        Ok(loaded) => loaded,
        Err(refused) => {
            let hint = format!("`backstop check {}` shows it in colour", arguments.policy.display());
            printer.error(&refused, Some(&hint));
            return Exit::Error;
        }
    };
    let _log_ends_with_the_command = logs::start(arguments.log, std::io::stderr());
    panics::log();
    match serve(&loaded, printer) {
        Ok(()) => Exit::Success,
        Err(error) => {
            let hint = error.downcast_ref::<BindError>().and_then(hint);
            printer.error(&*error, hint.as_ref().map(|hint| hint as &dyn Display));
            Exit::Error
        }
    }
}

fn hint(error: &BindError) -> Option<&'static str> {
    match error {
        BindError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            Some("another process listens there; stop it, or change `listen` or `admin` in the policy")
        }
        BindError::Listen { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Some("ports below 1024 need the capability CAP_NET_BIND_SERVICE")
        }
        _ => None,
    }
}

fn serve(loaded: &Loaded, printer: Printer) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        // Before anything is bound: a signal that comes during the start must not be lost.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        #[cfg(feature = "test-hooks")]
        crate::test_hooks::kill_at::arm()?;
        #[cfg(feature = "test-hooks")]
        let clock = crate::test_hooks::clock()?;
        #[cfg(not(feature = "test-hooks"))]
        let clock = backstop::clock::Clock::system()?;
        let gateway = Gateway::bind(loaded, &clock)?;
        let bound = gateway.bound()?;
        tell(gateway.report());
        for address in &bound.listen {
            printer.note(format_args!("listening on http://{address}"));
        }
        printer.note(format_args!("metrics on http://{}/metrics", bound.admin));
        tokio::spawn(reload(hangup, gateway.access_log()));
        gateway
            .run(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                // Whoever asks twice does not want to wait.
                tokio::spawn(async move {
                    tokio::select! {
                        _ = terminate.recv() => {}
                        _ = interrupt.recv() => {}
                    }
                    end_at_once();
                });
            })
            .await?;
        Ok(())
    })
}

/// By default SIGHUP ends a process at once. It is what service managers send for a reload, and what a closed terminal sends;
/// neither means that requests should be cut. Who has moved the access log away sends it too, and gets a new one.
async fn reload(mut hangup: Signal, access_log: Option<Reopen>) {
    while hangup.recv().await.is_some() {
        match &access_log {
            Some(access_log) => {
                access_log.reopen();
                tracing::info!(
                    target: "backstop::run",
                    "SIGHUP: the access log is opened anew; the policy stays, restart to use another one"
                );
            }
            None => tracing::warn!(
                target: "backstop::run",
                "SIGHUP is ignored: a reload is not available in this version; restart to use another policy"
            ),
        }
    }
}

#[expect(clippy::exit, reason = "the second signal means: now")]
fn end_at_once() {
    std::process::exit(130);
}

/// Says what was found on disk, loudly where something is lost.
fn tell(report: &OpenReport) {
    if let Some(path) = &report.set_aside {
        tracing::error!(
            target: "backstop::store",
            path = %path.display(),
            "the file of copies was damaged: it was moved there and a new one begun"
        );
    }
    match &report.disk {
        DiskState::Off => {}
        DiskState::Ok => tracing::info!(
            target: "backstop::store",
            copies = report.copies,
            corrupt = report.corrupt,
            "copies found on disk"
        ),
        DiskState::Full(trouble) | DiskState::Failed(trouble) => tracing::error!(
            target: "backstop::store",
            error = %trouble.message,
            "the disk cannot be used: copies are kept in memory only and will not survive a restart"
        ),
    }
}
