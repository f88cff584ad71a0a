//! The short account at the end: what clients got, and what the same schedule got without Backstop.

use crate::printer::Printer;

use super::Verdict;
use super::board::Board;
use super::stage::Calls;

/// Tells it, and judges.
pub(super) fn tell(board: &Board, calls: &Calls, printer: Printer) -> Verdict {
    let counts = board.total();
    let (backstop, direct) = (&counts.backstop, &counts.direct);
    let answered = backstop.live + backstop.copies + backstop.prepared;
    printer.line(format_args!(
        "What clients got, of {} requests each way, all counted in this run:",
        backstop.total()
    ));
    printer.line(format_args!(
        "  through Backstop  {:>6.2} % answered: {} live, {} from copies at most {} s old, {} prepared",
        percent(answered, backstop.total()),
        backstop.live,
        backstop.copies,
        backstop.oldest_s,
        backstop.prepared
    ));
    printer.line(format_args!(
        "                    {:>6.2} % refused at once or at the deadline ({}); slowest answer {:.2} s",
        percent(backstop.refused, backstop.total()),
        backstop.refused,
        backstop.slowest.as_secs_f64()
    ));
    printer.line(format_args!(
        "  directly          {:>6.2} % answered: {}; {} errors, {} broken answers called 200; slowest {:.2} s",
        percent(direct.right, direct.total()),
        direct.right,
        direct.errors,
        direct.broken,
        direct.slowest.as_secs_f64()
    ));
    printer.line(format_args!(
        "  the product service received {} requests behind Backstop, {} without it",
        calls.behind_backstop, calls.without
    ));
    let limit = board.max_age().as_secs();
    if backstop.forbidden > 0 {
        printer.line(format_args!(
            "\n{} answers were forbidden by the policy: wrong, older than {limit} s, unmarked or missing",
            backstop.forbidden
        ));
        return Verdict::Forbidden;
    }
    printer.line(format_args!("\nNo answer was wrong, older than {limit} s, or not marked for what it was"));
    Verdict::AsAccepted
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
