//! The tables of a drill file.

use crate::read::Need::{Default, Required};
use crate::read::{List, Named, OneOrMany, table};
use crate::value::Percent;
use crate::value::{
    Count, FaultChoice, Name, PositivePercent, PositiveTime, Rate, RequestLine, Status, Text, Time,
};

table! {
    /// A drill: what clients ask, what fails meanwhile, and what has to hold beside the policy's own promises.
    struct DrillTable {
        /// Whether everything behind the policy's dependencies is a sandbox, in which writes may really happen. Without it no
        /// request that may write reaches a dependency, and `effect` routes are not called at all.
        "sandbox" sandbox: bool = Default("`false`");
        /// How long requests are sent.
        "duration" duration: PositiveTime = Required;
        /// What clients ask.
        "load" load: List<DrillLoadTable> = Required;
        /// What fails, and when.
        "fault" fault: List<DrillFaultTable> = Default("nothing");
        /// What has to hold, beside what the policy promises anyway.
        "expect" expect: List<DrillExpectTable> = Default("only what the policy promises");
    }
}

table! {
    /// Requests of one kind, at a constant rate that waits for no answer.
    struct DrillLoadTable {
        /// Method and path, maybe with a query: `"GET /products/{key}"`. `{key}` counts 1, 2, 3... up to `keys`.
        "request" request: RequestLine = Required;
        /// How many are sent.
        "rate" rate: Rate = Default("`\"10/s\"`");
        /// Fields of the request.
        "headers" headers: Named<Text> = Default("none");
        /// Its body.
        "body" body: Text = Default("none");
        /// How many different requests `{key}` makes.
        "keys" keys: Count = Default("`1`");
    }
}

table! {
    /// A fault of one dependency, authorizer or cache.
    struct DrillFaultTable {
        /// The name of the dependency or authorizer, or the cache's: its address.
        "dependency" dependency: Text = Required;
        /// What goes wrong.
        "kind" kind: FaultChoice = Required;
        /// When it begins, from the drill's beginning.
        "from" from: Time = Required;
        /// When it ends.
        "to" to: PositiveTime = Required;
        /// How many of the calls it befalls. `refuse` and `full` befall all.
        "share" share: PositivePercent = Default("`\"100%\"`");
        /// The status, of `status`.
        "status" status: Status = Default("`503`");
        /// Of `slow` how late the answer is, of `drip` the pause between two bytes, of `flap` how long each turn lasts.
        "delay" delay: PositiveTime = Default("`\"100ms\"`");
        /// How old the answer says it is, of `age`, or how far its date lies ahead, of `date`; whole seconds.
        "by" by: PositiveTime = Default("`\"1h\"`");
        /// How many connections are served, of `full`.
        "connections" connections: Count = Default("`1`");
    }
}

table! {
    /// What has to hold. Which answers it is about is said by `route`, `from` and `to`; those that are meant of them by
    /// `status`, `outcome`, `source` and `reason`, and how many that may be by `at_least` and `at_most`.
    struct DrillExpectTable {
        /// Answers of this route.
        "route" route: Name = Default("every route");
        /// Of requests that were sent from then on.
        "from" from: Time = Default("the beginning");
        /// Of requests that were sent before then.
        "to" to: PositiveTime = Default("the end");
        /// Those with one of these statuses.
        "status" status: OneOrMany<Status> = Default("any");
        /// Those with one of these outcomes: `normal`, `fallback`, `rejected`, `failed`.
        "outcome" outcome: OneOrMany<Name> = Default("any");
        /// Those with one of these sources, such as `snapshot`.
        "source" source: OneOrMany<Name> = Default("any");
        /// Those with one of these reasons, such as `capacity`.
        "reason" reason: OneOrMany<Name> = Default("any");
        /// At least this share is so.
        "at_least" at_least: Percent = Default("`\"100%\"`, without `at_most`");
        /// At most this share is so.
        "at_most" at_most: Percent = Default("none");
        /// No copy is older.
        "max_age" max_age: Time = Default("the policy's own");
        /// Answers are there within this time after they were sent, at `percentile`.
        "latency" latency: PositiveTime = Default("within the deadline");
        /// Where `latency` is measured.
        "percentile" percentile: PositivePercent = Default("`\"99%\"`");
        /// The dependency that `calls_per_second` and `calls` are about.
        "dependency" dependency: Text = Default("none");
        /// It gets no more calls than this in any second.
        "calls_per_second" calls_per_second: Count = Default("what its resources allow");
        /// It gets no more calls than this in all.
        "calls" calls: Calls = Default("any number");
        /// From this moment on every answer is normal.
        "recovered_by" recovered_by: PositiveTime = Default("as the policy's recovery says");
    }
}

/// A number of calls, none included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls(pub(crate) u32);

impl crate::read::Value for Calls {
    fn read(node: crate::read::Node<'_>, cx: &mut crate::read::Context<'_>) -> Option<Self> {
        use toml::de::DeValue;
        if matches!(node.get(), DeValue::Integer(written) if written.as_str() == "0") {
            return Some(Self(0));
        }
        Count::read(node, cx).map(|count| Self(count.0))
    }

    fn shape() -> crate::read::Shape {
        crate::read::Shape::Integer { min: 0, max: u64::from(u32::MAX) }
    }
}
