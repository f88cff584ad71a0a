//! `[route.NAME.effect]`: operations that have an effect and whose answer may be lost.

use crate::read::Need::{Default, Required};
use crate::read::{List, OneOrMany, table};
use crate::shape::{AbsenceTable, Common, OutcomeTable, StatusQueryTable, VerifyTable};
use crate::value::{
    EditableHeader, KeyFormChoice, Name, OperationKey, Pointer, PositiveTime, ScopeText, StoreBodyChoice,
    UnknownAnswerChoice,
};

table! {
    /// Operations with an effect, such as payments and orders. Each is written down before it is sent and sent once at most,
    /// whatever happens; nothing is ever sent again. If its answer is lost it is unknown, and its status is asked for by the
    /// same key. The same key again gets the answer that there was.
    struct EffectTable {
        ..common: Common;
        /// Where the client's key of the operation is: `header.NAME`, or `body:` and a JSON Pointer to a string. A key is 1 to
        /// 255 visible ASCII characters. A request without one is refused (400).
        "operation_id" operation_id: OperationKey = Default("`\"header.idempotency-key\"`");
        /// How the upstream is told which operation it is.
        "send" send: SendTable = Default("as its keys say");
        /// Among whom keys are told apart; nothing of one scope is shown to another. `principal` is whom the `authorizer`
        /// verified; `header.NAME` a header that `trusted` proxies set, and without it a request is refused; `route`
        /// everybody who calls the route.
        "scope" scope: ScopeText = Default("`\"principal\"` with an `authorizer`; without one it must be written");
        /// Whether callers of different scopes have one account at the upstream. Then two of them may send the same key, and it
        /// would take both operations for one: `send = { as = "derived" }`.
        "shared_account" shared_account: bool = Default("not known: `check` warns");
        /// Routes whose copies a successful or unknown operation withdraws. Copies of the same path, whatever its query, are
        /// withdrawn always. Where the paths have parameters of the same names, only the path with the same values is
        /// withdrawn, else the whole route.
        "withdraws" withdraws: OneOrMany<Name> = Default("none");
        /// What the upstream's own answer proves.
        "outcome" outcome: OutcomeTable = Required;
        /// How the upstream is asked what became of an operation.
        "status_query" status_query: StatusQueryTable = Default("none: what is unknown stays so until a person decides");
        /// For how long the upstream knows an operation, by its own documentation. It is no default's to guess.
        "upstream_retention" upstream_retention: PositiveTime = Default("none; with a `status_query` it must be written");
        /// What it means that the upstream does not know an operation.
        "absence" absence: AbsenceTable = Default("none: absence proves nothing, and in the end a person decides");
        /// When the status of an unknown operation is asked for.
        "verify" verify: VerifyTable = Default("as its keys say");
        /// What the client gets while the outcome is unknown. `auto` is 202 if it sent `Prefer: respond-async` and the operation
        /// is followed, else 504 after a timeout of the upstream and 502 otherwise. `accepted` is 202 while it is
        /// followed, for clients that do not take every 2xx for a success.
        "unknown_answer" unknown_answer: UnknownAnswerChoice = Default("`\"auto\"`");
        /// What makes two requests with one key the same request. Another one with the same key is refused (422).
        "fingerprint" fingerprint: FingerprintTable = Default("method, host, path, query, media type, content coding and the whole body");
        /// What is kept of an answer's body, up to 16 KiB, for who repeats the operation: all but what `redact` names, or
        /// nothing. Requests are never kept.
        "store_body" store_body: StoreBodyChoice = Default("`\"redacted\"`, or `\"none\"` with `card_data` or a `scope` of `\"route\"`");
        /// JSON Pointers (RFC 6901) to what is taken out of an answer before it is kept.
        "redact" redact: List<Pointer> = Default("none");
        /// Whether answers may hold data of payment cards. Then no body is kept.
        "card_data" card_data: bool = Default("`false`");
        /// How long what is kept.
        "retention" retention: RetentionTable = Default("as its keys say");
    }
}

table! {
    /// How the upstream is told which operation it is.
    struct SendTable {
        /// The request header that is set to the operation's key; the client's own of that name is replaced.
        "header" header: EditableHeader = Default("the header of `operation_id`, or `idempotency-key` where that is in the body");
        /// What stands in it: the `client`'s key byte for byte, or one `derived` from route, scope and client key, which no
        /// other scope can have. The status is asked for by the same.
        "as" form: KeyFormChoice = Default("`\"client\"`");
    }
}

table! {
    /// What of a JSON body makes two requests the same: exactly one of `ignore` and `only`.
    struct FingerprintTable {
        /// JSON Pointers (RFC 6901) to what may differ, such as a time.
        "ignore" ignore: OneOrMany<Pointer> = Default("none");
        /// JSON Pointers to all that must be the same.
        "only" only: OneOrMany<Pointer> = Default("all of it");
    }
}

table! {
    /// How long what is kept, counted from the outcome. What is unknown or waits for a person is kept until it is neither.
    struct RetentionTable {
        /// The answer.
        "body" body: PositiveTime = Default("`\"24h\"`");
        /// That the operation was there, and its outcome. After that the same key is a new operation.
        "tombstone" tombstone: PositiveTime = Default("`\"720h\"`, thirty days");
    }
}
