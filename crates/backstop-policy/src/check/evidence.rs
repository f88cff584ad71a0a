//! Evidence: what an alternative was measured to bear.
//!
//! A file that cannot be understood refuses the policy, like every other slip. One that is missing, not valid today or
//! about another dependency does not: the rest of the policy holds without it, and none of the alternative is used.
//!
//! The date by which this judges is the one at which the file is read, and a machine's date may be wrong while it starts.
//! So evidence that is not valid then is warned of and passed on all the same: whoever asks the alternative judges it anew,
//! call by call.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use backstop_engine::time::Wall;
use toml::de::DeValue;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::digest::{Measured, hexadecimal};
use crate::read::{At, Context, Node, Value as _};
use crate::shape::{AlternativeTable, EvidenceTable};
use crate::source::FileSource;
use crate::syntax;
use crate::value::{Date, Name, Rate};

/// What an alternative was measured to bear.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) dependency: Box<str>,
    pub(crate) rate: Rate,
    pub(crate) concurrency: u32,
    pub(crate) p95: Duration,
    pub(crate) load: Box<str>,
    pub(crate) measured: Date,
    pub(crate) valid_until: Date,
    /// The digest that it is bound to, as it is written.
    pub(crate) policy: Option<Box<str>>,
    /// Whether it had expired when it was read.
    pub(crate) is_expired: bool,
}

/// The evidence about each route's alternative.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    /// One entry per route in the file's order.
    of_routes: Vec<Option<Evidence>>,
    /// The routes whose alternative may be asked: now, or once its evidence begins to count.
    usable: HashSet<Box<str>>,
}

impl Verified {
    /// One entry per route in the file's order, whether or not it counts today.
    pub(crate) fn of_routes(&self) -> impl Iterator<Item = Option<&Evidence>> {
        self.of_routes.iter().map(Option::as_ref)
    }

    /// Whether this route's alternative may ever be asked.
    pub(crate) fn may_be_asked(&self, route: RouteView<'_>) -> bool {
        self.usable.contains(route.text())
    }
}

/// Files that were read already: each is reported once, however many routes name it.
type Seen = Vec<(PathBuf, Option<Rc<Evidence>>)>;

pub(crate) fn read(view: &View<'_>, files: &dyn FileSource, cx: &mut Context<'_>) -> Verified {
    let mut seen = Seen::new();
    let of_routes: Vec<_> = view.routes().map(|route| of_route(view, route, files, &mut seen, cx)).collect();
    let usable = view
        .routes()
        .zip(&of_routes)
        .filter(|(_, evidence)| evidence.as_ref().is_some_and(|evidence| !evidence.is_expired));
    let usable = usable.map(|(route, _)| route.text().into()).collect();
    Verified { of_routes, usable }
}

fn of_route(
    view: &View<'_>,
    route: RouteView<'_>,
    files: &dyn FileSource,
    seen: &mut Seen,
    cx: &mut Context<'_>,
) -> Option<Evidence> {
    let alternative = route.alternative()?;
    let table = &alternative.value;
    let name = &table.dependency.as_ref()?.value.0;
    let Some(verified) = &table.verified else {
        let message = format!("nothing says what `{name}` bears, so none of it is used");
        cx.report(
            Finding::new(Code::NoEvidence, alternative.bytes.clone(), message)
                .help("measure it beside its usual load, and name the evidence: `verified = \"FILE\"`"),
        );
        return None;
    };
    let path = Path::new(cx.file()).parent().unwrap_or(Path::new("")).join(&*verified.value.0);
    let evidence = match seen.iter().find(|(earlier, _)| *earlier == path) {
        Some((_, evidence)) => evidence.clone(),
        None => {
            let evidence = read_file(&path, &verified.bytes, files, cx).map(|mut evidence| {
                evidence.is_expired = evidence.valid_until.last < files.now();
                Rc::new(evidence)
            });
            seen.push((path.clone(), evidence.clone()));
            evidence
        }
    };
    let message = match evidence {
        Some(evidence) => {
            let counts = is_about(alternative, name, &evidence, files.now(), cx)
                && is_of_this_policy(view, alternative, name, &evidence, cx);
            return counts.then(|| (*evidence).clone());
        }
        None => format!("`{}` is not there, so none of `{name}` is used", path.display()),
    };
    // A file that is there and wrong is an error already, and lints then say nothing.
    cx.report(
        Finding::new(Code::NoEvidence, verified.bytes.clone(), message)
            .help("the path is relative to the policy file; measure it and write the evidence there"),
    );
    None
}

/// Whether the evidence is about this dependency. Says so too if it is not valid now.
fn is_about(
    alternative: &At<AlternativeTable>,
    name: &str,
    evidence: &Evidence,
    now: Wall,
    cx: &mut Context<'_>,
) -> bool {
    let place = alternative.value.verified.as_ref().map_or(alternative.bytes.clone(), |at| at.bytes.clone());
    if *evidence.dependency != *name {
        let message = format!("the evidence is about `{}`, so none of `{name}` is used", evidence.dependency);
        cx.report(
            Finding::new(Code::EvidenceOfAnother, place, message)
                .help(format!("measure `{name}` itself, or name the file that is about it")),
        );
        return false;
    }
    let (message, help) = if evidence.is_expired {
        let until = &evidence.valid_until.text;
        (
            format!("the evidence was valid until {until}, so none of `{name}` is used"),
            "measure it again: what it bears may have changed since",
        )
    } else if evidence.measured.first > now {
        let measured = &evidence.measured.text;
        (
            format!("the evidence was measured on {measured}, so none of `{name}` is used before then"),
            "is the date of this machine right? Once it is, the evidence counts",
        )
    } else {
        return true;
    };
    cx.report(Finding::new(Code::EvidenceNotValid, place, message).help(help));
    true
}

/// Whether the policy says of the dependency what it said when it was measured.
fn is_of_this_policy(
    view: &View<'_>,
    alternative: &At<AlternativeTable>,
    name: &str,
    evidence: &Evidence,
    cx: &mut Context<'_>,
) -> bool {
    let (Some(bound), Some(dependency)) =
        (&evidence.policy, view.dependencies().find(|dependency| *dependency.name.value.0 == *name))
    else {
        return true;
    };
    let resource = |used: &At<Name>| {
        let resource = view.resources().find(|resource| resource.name.value == used.value)?;
        let table = &resource.table.value;
        let places = table.concurrency.as_ref().map(|concurrency| concurrency.value.0);
        Some((&*resource.name.value.0, places, table.rate.as_ref().map(|rate| rate.value.per_second())))
    };
    let measured = Measured {
        name,
        addresses: dependency.addresses().collect(),
        connections: dependency.connections(),
        resources: dependency.uses().filter_map(resource).collect(),
    };
    if hexadecimal(&measured.digest()) == **bound {
        return true;
    }
    let place = alternative.value.verified.as_ref().map_or(alternative.bytes.clone(), |at| at.bytes.clone());
    let message = format!(
        "the policy says something else of `{name}` than when it was measured, so none of it is used"
    );
    cx.report(Finding::new(Code::EvidenceOfAnotherPolicy, place, message).help(
        "its addresses, `connections`, `uses` or what those resources bear have changed: measure it again with `backstop drill capacity`",
    ));
    false
}

fn read_file(
    path: &Path,
    bytes: &std::ops::Range<usize>,
    files: &dyn FileSource,
    cx: &mut Context<'_>,
) -> Option<Evidence> {
    let shown = path.display().to_string();
    let text = match files.read(path) {
        Ok(content) => String::from_utf8(content).map_err(|error| error.utf8_error().to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => parse(&text, &shown, cx),
        Err(why) => {
            let message = format!("cannot read `{shown}`: {why}");
            cx.report(
                Finding::new(Code::EvidenceFile, bytes.clone(), message)
                    .help("check the path and the permissions; it is a TOML file in UTF-8"),
            );
            None
        }
    }
}

/// Reads the file's text; what is wrong with it is reported with the lines and columns of that file.
fn parse(text: &str, file: &str, cx: &mut Context<'_>) -> Option<Evidence> {
    let mut inner = Context::new(file, text);
    let document = syntax::parse(&mut inner);
    let root = toml::Spanned::new(0..0, DeValue::Table(document.into_inner()));
    let evidence = EvidenceTable::read(Node { path: "", value: &root }, &mut inner);
    if let Some(evidence) = &evidence {
        dates(evidence, &mut inner);
        rate(evidence, &mut inner);
    }
    let refused = inner.has_errors();
    cx.adopt(inner.all().0, text);
    evidence.filter(|_| !refused).and_then(complete)
}

fn dates(table: &EvidenceTable, cx: &mut Context<'_>) {
    let (Some(measured), Some(until)) = (&table.measured, &table.valid_until) else { return };
    if until.value.last < measured.value.first {
        let message = "`valid_until` lies before `measured`";
        cx.report(
            Finding::new(Code::Date, until.bytes.clone(), message)
                .related(measured.bytes.clone(), "measured then")
                .help("evidence counts from the day on which it was measured"),
        );
    }
}

fn rate(table: &EvidenceTable, cx: &mut Context<'_>) {
    if let Some(rate) = table.rate.as_ref().filter(|rate| rate.value.per_second() == 0) {
        let message = "less than one call per second is no capacity";
        cx.report(
            Finding::new(Code::OutOfRange, rate.bytes.clone(), message)
                .help("rates count in whole calls per second, rounded down: write at least `\"60/m\"`"),
        );
    }
}

fn complete(table: EvidenceTable) -> Option<Evidence> {
    Some(Evidence {
        dependency: table.dependency?.value.0,
        rate: table.rate?.value,
        concurrency: table.concurrency?.value.0,
        p95: table.p95?.value.0,
        load: table.load?.value.0,
        measured: table.measured?.value,
        valid_until: table.valid_until?.value,
        policy: table.policy.map(|policy| policy.value.0),
        is_expired: false,
    })
}
