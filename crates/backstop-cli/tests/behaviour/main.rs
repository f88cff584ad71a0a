//! What clients get from the built binary while the origin fails, and what the origin really received.
#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod age;
mod authorization;
mod authorized_copies;
mod breaker;
mod breaker_restart;
mod broken_answers;
mod cache_outage;
mod cached_coverage;
mod cached_followers;
mod cached_read;
mod client_errors;
mod composed;
mod composed_parts;
mod coverage;
mod credentials;
mod deadline;
mod demo;
mod disk;
mod edits;
mod effect;
mod effect_clients;
mod effect_disk;
mod effect_leaving;
mod effect_verified;
mod empty_cache;
mod empty_copies;
mod half_body;
mod head_requests;
mod impatient;
mod incidents;
mod incidents_on_disk;
mod ledger_bench;
mod logs;
mod manual_breaker;
mod nobodys_failure;
mod operations;
mod operations_asked;
mod optional;
mod origin_wishes;
mod panics;
mod pass_through;
mod plain_binary;
mod poisoning;
mod probes;
mod refused_policies;
mod restart;
mod retries;
mod saturation;
mod second_dependency;
mod shared_resources;
mod slow_bodies;
mod slow_read;
mod spelling;
mod statuses;
mod taken_folder;
mod tokens;
mod tokens_keys;
mod two_tiers;
mod vary;
mod withdrawal;
mod withdrawal_named;
