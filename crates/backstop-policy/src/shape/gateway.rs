//! `[gateway]`.

use crate::read::Need::{Contract, Default, Required};
use crate::read::{List, OneOrMany, table};
use crate::value::{
    AuthorizerUrl, Count, HeadSize, IpRange, Listen, ModeChoice, Name, PositiveSize, PositiveTime, Threads,
};

table! {
    /// The process as a whole: where it listens and what it takes at most.
    struct GatewayTable {
        /// Its name in `Via`, `Cache-Status` and `Proxy-Status`. In a row of gateways every one needs its own. Left at
        /// `backstop`, it is called `backstop-` and eight hexadecimal digits in `Via`, drawn at every start, so that several
        /// gateways without a name in a row are no loop.
        "name" name: Name = Default("`\"backstop\"`");
        /// Where clients are accepted. Port 0 lets the system choose.
        "listen" listen: OneOrMany<Listen> = Required;
        /// Where metrics, readiness and incidents are served, and breakers are held by hand. Keep it on loopback or on a
        /// network of its own.
        "admin" admin: Listen = Default("`\"127.0.0.1:9901\"`");
        /// Whether decisions are carried out: `enforce`, or `observe`, in which every request is forwarded as if nothing were
        /// decided, and what would have been decided is counted and shown. For routes that say nothing of their own.
        "mode" mode: ModeChoice = Default("`\"enforce\"`");
        /// Requests in flight in the whole process, answers from copies included. The excess is refused at once. Optional
        /// parts may take less than 60 % of them, reads (of any class) less than 85 %, each at least one; the last are for
        /// requests that may change something. It also bounds the clients' connections: four times as many and 1000 more may be open, but no more than 80 % of the
        /// files that the process may open; one more is closed at once.
        "in_flight" in_flight: Count = Contract;
        /// How many gateways with this policy stand side by side. Each tells those that it refuses when to come back
        /// (`Retry-After`) by its own part of what a resource's `rate` has to spare.
        "instances" instances: Count = Default("`1`");
        /// Worker threads.
        "threads" threads: Threads = Default("one per core");
        /// Peers whose `X-Forwarded-*` and `Forwarded` fields are believed. Those of everyone else are replaced.
        "trusted" trusted: List<IpRange> = Default("none");
        /// What one client may send and how long it may take.
        "limits" limits: LimitsTable = Default("as its keys say");
        /// Memory for answers that are held back until they are complete, over all requests. A route's `buffer` is its
        /// share per request. Requests on `effect` routes, which are held whole before they are sent, have half as much
        /// besides; what does not fit there is refused (503).
        "buffer_memory" buffer_memory: PositiveSize = Default("`\"256 MiB\"`");
        /// How long a graceful stop may take before what is left is cut. No route's `deadline` may be longer.
        "drain" drain: PositiveTime = Default("`\"10s\"`");
        /// Who is called when an operation of a route of the class `effect` needs a person.
        "attention" attention: AttentionTable = Default("the log alone");
    }
    later {
        "tls" => "TLS to clients";
    }
}

table! {
    /// Who is called when an operation needs a person. Each is a line in the log too, and what the webhook does not take in four
    /// tries is there alone.
    struct AttentionTable {
        /// Where it is told with a POST: `http://HOST:PORT/PATH`. It gets a JSON object with `operation`, `route`, `why`, `created`
        /// and `since`: nothing of the request, and not its key. Any 2xx confirms it.
        "webhook" webhook: AuthorizerUrl = Default("none");
    }
}

table! {
    /// What one client may send and how long it may take.
    struct LimitsTable {
        ..route: RouteLimitsTable;
        /// Largest request head, to the byte: request line, field lines and line ends, without optional blanks. At least 8 KiB.
        "head" head: HeadSize = Default("`\"32 KiB\"`");
        /// Longest time in which a request head arrives. An HTTP/1.1 connection that sends none is closed after it; one
        /// of HTTP/2 that had a request may rest for 60 s.
        "head_time" head_time: PositiveTime = Default("`\"10s\"`");
    }
}

table! {
    /// Limits that a route may set for itself.
    struct RouteLimitsTable {
        /// Largest request body.
        "body" body: PositiveSize = Default("`\"1 MiB\"`, in a route the gateway's, in one of the class `effect` at most `\"256 KiB\"`");
        /// Longest time in which a request body arrives.
        "body_time" body_time: PositiveTime = Default("`\"30s\"`, in a route the gateway's");
        /// Longest time for which what is ready of a reply waits for a client that does not take it. It starts anew each
        /// time all of that was taken, or 16 KiB of it. In HTTP/2 the gateway's counts for the whole connection.
        "reply_time" reply_time: PositiveTime = Default("`\"30s\"`, in a route the gateway's");
    }
}
