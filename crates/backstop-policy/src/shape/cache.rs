//! `cache`, `fill` and `local_copy` of a route.

use crate::read::Need::{Contract, Default, Required};
use crate::read::table;
use crate::shape::BreakerTable;
use crate::value::{Count, Name, PositiveTime, Rate, RedisUrl};

table! {
    /// A Redis or Valkey server. Routes with the same `url` share its connections and its breaker, and so name the same
    /// `timeout`, `connect`, `prefix` and `breaker`.
    struct CacheTable {
        /// Where it is: `redis://HOST:PORT/DATABASE`, in plain text.
        "url" url: RedisUrl = Required;
        /// The oldest answer that it may give, inclusive to the nanosecond. An origin that says how long its answer is fresh
        /// may shorten it, never lengthen it.
        "ttl" ttl: PositiveTime = Contract;
        /// How long it is waited for; then the dependency is read.
        "timeout" timeout: PositiveTime = Default("`\"20ms\"`");
        /// Longest time to connect. Connections are opened beside requests, which wait for them no longer than `timeout`.
        "connect" connect: PositiveTime = Default("`\"250ms\"`");
        /// What every key begins with. Gateways with the same prefix share their answers.
        "prefix" prefix: Name = Default("`\"backstop\"`");
        /// When it is not asked any more because it fails. It cannot be operated by hand: only `state` holds it.
        "breaker" breaker: BreakerTable = Default("`{}`, with `open = \"1s\"` and `slow` the `timeout`");
    }
}

table! {
    /// A budget for reads of the dependency on this route. What exceeds it gets the local copy or is refused at once.
    struct FillTable {
        /// Reads under way at once.
        "concurrency" concurrency: Count = Default("half of what the dependency bears: its `connections`, or the `concurrency` of a resource that it uses if that is less");
        /// Reads in a time.
        "rate" rate: Rate = Default("half of the smallest `rate` of the resources that the dependency uses; none without one");
        /// How long one read may take. It goes on when nobody waits for it any more, and what it brings is kept.
        "deadline" deadline: PositiveTime = Default("`\"2s\"`, or the route's `deadline` if that is longer");
        /// Requests that wait for the read of one key.
        "waiters" waiters: Count = Default("`100`");
    }
}

table! {
    /// A copy of one's own, in memory and on disk as those of a `public_read`.
    struct LocalCopyTable {
        /// The oldest copy that may be served, inclusive to the nanosecond.
        "max_age" max_age: PositiveTime = Contract;
    }
}
