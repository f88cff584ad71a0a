//! What answers of an upstream prove, and how it is asked what became of an operation.

use crate::read::Need::{Contract, Default, Required};
use crate::read::{List, Named, OneOrMany, table};
use crate::value::{
    Count, EchoText, EditableHeader, Factor, LiteralValue, MatchChoice, Pointer, PositivePercent,
    PositiveTime, Rate, Status, StatusPath, VerdictChoice,
};

table! {
    /// What the upstream's own answer to the one request proves. No answer may match rules of two of the lists. One that
    /// matches none, every failure and every timeout leave the outcome unknown.
    struct OutcomeTable {
        /// The effect happened.
        "succeeded" succeeded: List<AnswerTable> = Required;
        /// It is under way.
        "pending" pending: List<AnswerTable> = Default("none");
        /// The upstream refused, and there was no effect.
        "refused" refused: List<RefusedTable> = Default("none");
    }
}

table! {
    /// One kind of answer.
    struct AnswerTable {
        /// Its status is one of these.
        "status" status: OneOrMany<Status> = Required;
        /// Each JSON Pointer (RFC 6901) leads to one of its values: `{ "/status" = ["succeeded", "captured"] }`. Only a complete
        /// body that is one JSON value matches then.
        "json" json: Named<OneOrMany<LiteralValue>, Pointer> = Default("any body");
    }
}

table! {
    /// One kind of refusal.
    struct RefusedTable {
        ..answer: AnswerTable;
        /// The upstream promises that such an answer had no effect. Needed for 408, 409, 425, 429 and 5xx, which many send after
        /// one.
        "no_effect" no_effect: bool = Default("`false`");
    }
}

table! {
    /// A GET by which the upstream is asked what became of an operation. It goes to the route's `dependency` with the route's
    /// `request_headers`, apart from requests and from their breaker. No answer may match rules of two of the lists. One that
    /// matches none, every failure and every timeout say nothing.
    struct StatusQueryTable {
        /// What is asked for: a path, maybe with a query, that holds `{operation_id}` once. That is the key as the upstream was
        /// given it, percent-encoded.
        "path" path: StatusPath = Required;
        /// How long one query may take, its whole answer included.
        "timeout" timeout: PositiveTime = Default("`\"2s\"`");
        /// Queries of this route in a time. After an outage, 3000 unknown operations take ten minutes at `"5/s"`.
        "rate" rate: Rate = Default("`\"5/s\"`");
        /// Queries of this route under way at once.
        "concurrency" concurrency: Count = Default("`4`");
        /// Where the answer is a list: how the operation is found in it.
        "list" list: ListTable = Default("the answer is about one operation");
        /// JSON Pointers whose value must equal what the operation has there: `operation_id`, or `body:` and a JSON Pointer into
        /// its request, of which a keyed hash is kept for that. If another value stands there, a person decides.
        "echo" echo: Named<EchoText, Pointer> = Default("none");
        /// The effect happened, whatever became of it later (a refund too).
        "succeeded" succeeded: List<AnswerTable> = Required;
        /// It did not happen and never will.
        "failed" failed: List<AnswerTable> = Default("none");
        /// It is under way.
        "pending" pending: List<AnswerTable> = Default("none");
        /// The upstream does not know the operation.
        "absent" absent: List<AnswerTable> = Default("none");
    }
}

table! {
    /// How the operation is found in a list, such as the answer to `/payments?reference={operation_id}`. With one item of its own all
    /// rules but `absent` are about that item, its pointers lead into it, and so do those of `echo`. An empty list does not know
    /// the operation, two items of its own need a person. A list with items of others alone says nothing: its filter may be
    /// ignored, and the operation be on another page.
    struct ListTable {
        /// JSON Pointer to the array.
        "items" items: Pointer = Required;
        /// JSON Pointers into each item: all of them lead to the operation's id in its own, `{ "/reference" = "operation_id" }`.
        "match" matching: Named<MatchChoice, Pointer> = Required;
        /// JSON Pointer to what says that there are further pages. An empty list counts only if `false`, `null`, `0` or `""` is
        /// there.
        "more" more: Pointer = Default("a list has one page");
    }
}

table! {
    /// What it means that the upstream does not know an operation.
    struct AbsenceTable {
        /// The longest time in which an operation that was sent may still begin or may not be visible yet: pauses, queues and
        /// lagging replicas of the upstream together. Absences count only so long after the request ended, its lease ended
        /// and this process began, whichever was last.
        "settle" settle: PositiveTime = Contract;
        /// So many absences that count are needed.
        "confirmations" confirmations: Count = Default("`3`");
        /// The least time between two that count.
        "spacing" spacing: PositiveTime = Default("`\"60s\"`");
        /// What they lead to: `attention` asks a person, `not_executed` tells the client that it did not happen. That needs all of
        /// the rule: `absent` with `json`, at least 2 `confirmations`, and `calibrate`.
        "verdict" verdict: VerdictChoice = Default("`\"attention\"`");
        /// How it is found out whether the status query sees what has just happened. If it does not, no absence counts; nor does
        /// one before it was seen to since the process began.
        "calibrate" calibrate: CalibrateTable = Default("none");
        /// How the upstream is told when it must no longer execute an operation, so that none begins late.
        "not_after" not_after: NotAfterTable = Default("none");
    }
}

table! {
    /// How it is found out whether the status query sees what has just happened.
    struct CalibrateTable {
        /// The share of known successes whose status is asked for.
        "sample" sample: PositivePercent = Default("`\"1%\"`");
        /// How soon it must show them. At most `settle`.
        "must_see_within" must_see_within: PositiveTime = Required;
    }
}

table! {
    /// How the upstream is told when it must no longer execute an operation.
    struct NotAfterTable {
        /// The request header that is set to that moment (RFC 3339, in UTC): the end of the operation's lease.
        "header" header: EditableHeader = Required;
    }
}

table! {
    /// When the status of an unknown operation is asked for. Every wait is drawn from nothing up to its longest.
    struct VerifyTable {
        /// The longest wait before the first query.
        "first" first: PositiveTime = Default("`\"1s\"`");
        /// By what the longest wait grows after each. At least 1.
        "factor" factor: Factor = Default("`2`");
        /// What it never exceeds.
        "cap" cap: PositiveTime = Default("`\"60s\"`");
        /// For so long an operation is followed; then a person decides. Less than `upstream_retention`.
        "deadline" deadline: PositiveTime = Default("`\"12h\"`, or four fifths of `upstream_retention` if that is less");
        /// How often the status is asked for while a person has it; and of what was decided by absence, in case it happens late.
        "attention_poll" attention_poll: PositiveTime = Default("`\"15m\"`");
    }
}
