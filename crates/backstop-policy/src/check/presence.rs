//! Whether there is anything to do, and not more than can be numbered.

use crate::check::View;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context, Named};

/// Routes, dependencies and resources are numbered in 16 bits.
const MOST: usize = 65_535;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    if let Some(dependencies) = &view.file.dependency {
        count("dependency", dependencies, cx);
    }
    if let Some(resources) = &view.file.resource {
        count("resource", resources, cx);
    }
    if let Some(authorizers) = &view.file.authorizer {
        count("authorizer", authorizers, cx);
    }
    if let Some(routes) = &view.file.route {
        count("route", routes, cx);
    }
}

fn count<T>(kind: &str, named: &At<Named<T>>, cx: &mut Context<'_>) {
    let bytes = named.bytes.clone();
    match named.value.names.len() {
        0 => {
            let message = format!("`[{kind}]` defines nothing");
            cx.report(Finding::new(Code::Empty, bytes, message).help(format!("add a table `[{kind}.NAME]`")));
        }
        1..=MOST => {}
        _ => cx.report(Finding::new(
            Code::OutOfRange,
            bytes,
            format!("more than {MOST} tables `[{kind}.NAME]`"),
        )),
    }
}
