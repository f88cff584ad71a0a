//! `backstop drill capacity`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use backstop::clock::Clock;
use backstop_engine::incident::Moment;
use backstop_engine::time::Wall;
use backstop_lab::drill::capacity::{Evidence, Search, Sign, Step, search};
use backstop_policy::{DependencySettings, Loaded};

use super::Failed;
use crate::args::Capacity;
use crate::exit::Exit;
use crate::printer::Printer;

const DAY_NS: i64 = 86_400_000_000_000;

/// Measures, and writes the evidence. Fails if already the first step is too much.
pub(super) fn capacity(arguments: &Capacity, printer: Printer) -> Result<Exit, Failed> {
    let loaded = backstop_policy::load(&arguments.policy)?;
    let dependency = loaded.dependencies.iter().find(|dependency| *dependency.name == *arguments.dependency);
    let dependency =
        dependency.ok_or_else(|| format!("there is no dependency `{}`", arguments.dependency))?;
    let to = most(arguments, &loaded, dependency, printer);
    if arguments.from > to {
        return Err(format!("the first step of {}/s is beyond {to}/s", arguments.from).into());
    }
    let output = output(arguments, &loaded, dependency)?;
    let request = Search {
        target: target(dependency)?,
        path: arguments.path.clone(),
        fields: arguments.header.clone(),
        from: arguments.from,
        to,
        baseline: arguments.baseline,
        step: arguments.step,
        connections: dependency.connections,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let knee = runtime.block_on(search(&request, |step| printer.line(format_args!("{}", words(step)))))?;
    let Some(borne) = knee.borne else {
        printer.note(format_args!("already the first step is too much: no evidence is written"));
        return Ok(Exit::Failure);
    };
    let now = Clock::system()?.now().wall;
    let until = Wall::from_unix_ns(now.as_unix_ns().saturating_add(i64::from(arguments.days) * DAY_NS));
    let baseline = format!("{}/s sent beside by the measurement", arguments.baseline);
    let load = arguments.load.as_ref().map_or_else(|| baseline.clone(), |load| format!("{load}; {baseline}"));
    let text = Evidence {
        dependency: &dependency.name,
        borne: &borne,
        measured: &date(now),
        valid_until: &date(until),
        load: &load,
        policy: &loaded.digest_of(dependency.id),
    }
    .text();
    if let Some(folder) = output.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    super::file(&output, &text)?;
    printer.line(format_args!(
        "{}/s and {} calls at once: {}",
        borne.offered,
        borne.concurrency(),
        output.display()
    ));
    Ok(Exit::Success)
}

fn words(step: &Step) -> String {
    let sign = match step.sign {
        None => "",
        Some(Sign::Throughput) => "  too much: answers do not follow",
        Some(Sign::Latency) => "  too much: latency left what it was",
        Some(Sign::Errors) => "  too much: calls fail",
    };
    format!(
        "{:>6}/s  answered {:>8.1}/s  p95 {:>8.1} ms  errors {:>5.1} %  at once {:>6.1}{sign}",
        step.offered,
        step.answered,
        step.p95.as_secs_f64() * 1000.0,
        step.errors * 100.0,
        step.at_once
    )
}

/// The last step: never beyond what the resources allow that it uses, its baseline counted.
fn most(arguments: &Capacity, loaded: &Loaded, dependency: &DependencySettings, printer: Printer) -> u64 {
    if arguments.beyond_policy {
        return arguments.to;
    }
    let rules = loaded.policy.dependencies.get(usize::from(dependency.id.0));
    let resources = rules.into_iter().flat_map(|rules| &rules.uses);
    let resources = resources.filter_map(|used| loaded.policy.resources.get(usize::from(used.0)));
    let mut most = arguments.to;
    for resource in resources {
        let Some(rate) = resource.rate else { continue };
        let left = rate.saturating_sub(arguments.baseline);
        if left < most {
            printer.note(format_args!("no step goes beyond {left}/s: `{}` has {rate}/s", resource.name));
            most = left;
        }
    }
    most
}

fn target(dependency: &DependencySettings) -> Result<SocketAddr, Failed> {
    let address = dependency.addresses.first().ok_or("the dependency has no address")?;
    let mut resolved = (&*address.host, address.port).to_socket_addrs()?;
    Ok(resolved.next().ok_or("its name stands for no address")?)
}

/// The file that the policy cites about it, relative to the policy.
fn output(arguments: &Capacity, loaded: &Loaded, dependency: &DependencySettings) -> Result<PathBuf, Failed> {
    if let Some(output) = &arguments.output {
        return Ok(output.clone());
    }
    let routes = loaded.routes.iter().zip(&loaded.policy.routes);
    let cited =
        routes.filter(|(_, rules)| rules.alternative.is_some_and(|other| other.dependency == dependency.id));
    let cited = cited.filter_map(|(route, _)| route.evidence.as_ref()).map(|evidence| &evidence.file).next();
    let cited = cited.ok_or_else(|| {
        format!(
            "no evidence file of `{}` is read by the policy yet: name one with `--output`",
            dependency.name
        )
    })?;
    Ok(arguments.policy.parent().unwrap_or(Path::new("")).join(&**cited))
}

fn date(wall: Wall) -> String {
    Moment { wall, ..Moment::default() }.date()
}
