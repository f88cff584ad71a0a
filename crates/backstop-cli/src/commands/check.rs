//! `backstop check POLICY`.

use backstop_policy::{Counts, render_human, render_json};

use crate::args::{Check, Format};
use crate::exit::Exit;
use crate::printer::Printer;

/// Says what is wrong with a policy. Fails on errors; with `--strict` on warnings too.
pub(crate) fn check(arguments: &Check, printer: Printer) -> Exit {
    let (findings, waived, text) = match backstop_policy::load(&arguments.policy) {
        Ok(loaded) => (loaded.warnings, loaded.waived, loaded.sources.text().to_owned()),
        Err(refused) => (refused.diagnostics, Vec::new(), refused.text),
    };
    // What is not shown counts too.
    let Counts { errors, warnings, .. } = Counts::of(&findings);
    match arguments.format {
        Format::Json => printer.line(format_args!("{:#}", render_json(&findings))),
        Format::Human => {
            if !findings.is_empty() {
                printer.line(format_args!("{}", render_human(&findings, &text, printer.colour())));
            }
            for waived in &waived {
                let code = waived.diagnostic.code.as_str();
                printer.line(format_args!("waived {code}: {}", waived.reason));
            }
            let file = arguments.policy.display();
            let plural = |count: usize| if count == 1 { "" } else { "s" };
            let verdict = if errors == 0 {
                "accepted".to_owned()
            } else {
                format!("refused, {errors} error{}", plural(errors))
            };
            printer.line(format_args!("{file}: {verdict}, {warnings} warning{}", plural(warnings)));
        }
    }
    if errors > 0 || (arguments.strict && warnings > 0) { Exit::Failure } else { Exit::Success }
}
