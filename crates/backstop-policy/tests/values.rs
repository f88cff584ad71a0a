//! What is said of single values that cannot mean what was meant.

mod support;

use backstop_policy::render_human;
use insta::assert_snapshot;
use support::diagnosed;

fn shown(fragment: &str) -> String {
    let (text, diagnostics) = diagnosed(fragment);
    render_human(&diagnostics, &text, false)
}

/// Requests are matched in one spelling, so a literal in another one would leave its route without requests.
#[test]
fn a_literal_that_no_request_can_match_is_told_how_to_be_written() {
    let fragment = r#"
[route.a.direct]
match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
strip_prefix = "/%61"
dependency   = "catalog"
deadline     = "1s"
in_flight    = 10
"#;
    assert_snapshot!(shown(fragment), @r#"
    error[BS0215]: no request matches `%61`: paths are compared in one spelling
     --> policy.toml:3:23
      |
    3 | match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
      |                       ^^^
      |
    help: write it as `/a/x`
      |
    3 - match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
    3 + match        = ["GET /a/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
      |

    error[BS0215]: no request matches `caf%c3%a9`: paths are compared in one spelling
     --> policy.toml:3:37
      |
    3 | match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
      |                                     ^^^^^^^^^
      |
    help: write it as `/caf%C3%A9/{id}`
      |
    3 - match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
    3 + match        = ["GET /%61/x", "PUT /caf%C3%A9/{id}", "PUT /café", "PUT /a%2fb/a b"]
      |

    error[BS0215]: no request matches `café`: paths are compared in one spelling
     --> policy.toml:3:60
      |
    3 | match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
      |                                                            ^^^^
      |
    help: write it as `/caf%C3%A9`
      |
    3 - match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
    3 + match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /caf%C3%A9", "PUT /a%2fb/a b"]
      |

    error[BS0215]: no request matches `a%2fb`: paths are compared in one spelling
     --> policy.toml:3:73
      |
    3 | match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
      |                                                                         ^^^^^
      |
    help: write it as `/a%2Fb/a%20b`
      |
    3 - match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2fb/a b"]
    3 + match        = ["GET /%61/x", "PUT /caf%c3%a9/{id}", "PUT /café", "PUT /a%2Fb/a%20b"]
      |

    error[BS0215]: no request matches `%61`: paths are compared in one spelling
     --> policy.toml:4:18
      |
    4 | strip_prefix = "/%61"
      |                  ^^^
      |
    help: write it as `/a`
      |
    4 - strip_prefix = "/%61"
    4 + strip_prefix = "/a"
      |
    "#);
}

#[test]
fn a_limit_that_could_not_be_kept_is_refused_with_the_reason() {
    let fragment = r#"
[gateway]
listen    = "127.0.0.1:8080"
in_flight = 1000
limits    = { head = "4 KiB", head_time = "500us" }

[store]
snapshots = { disk = "1 KiB" }

[dependency.catalog]
url   = "http://127.0.0.1:9001"
queue = "1ns"
"#;
    assert_snapshot!(shown(fragment), @r#"
    error[BS0204]: a limit of `4 KiB` cannot be kept: at least 8 KiB
     --> policy.toml:5:22
      |
    5 | limits    = { head = "4 KiB", head_time = "500us" }
      |                      ^^^^^^^
      |
    help: heads are read in pieces of up to 8 KiB, so a smaller limit would not hold
      |
    5 - limits    = { head = "4 KiB", head_time = "500us" }
    5 + limits    = { head = "8 KiB", head_time = "500us" }
      |

    error[BS0204]: `500us` is too short: at least 1ms
     --> policy.toml:5:43
      |
    5 | limits    = { head = "4 KiB", head_time = "500us" }
      |                                           ^^^^^^^

    error[BS0204]: `1 KiB` is no room for copies: at least 1 MiB
     --> policy.toml:8:22
      |
    8 | snapshots = { disk = "1 KiB" }
      |                      ^^^^^^^
      |
      = help: the file takes some room for itself; `"0"` keeps copies in memory only

    error[BS0204]: `1ns` is too short: at least 1ms
      --> policy.toml:12:9
       |
    12 | queue = "1ns"
       |         ^^^^^
    "#);
}

#[test]
fn an_address_that_is_not_written_to_its_end_is_told_so() {
    let fragment = r#"
[dependency.catalog]
url  = ["http://[::1", "http://[::1:9001", "http://[::1]:9001"]
host = "[::1:80"

[gateway]
listen    = [{ address = "0.0.0.0:443", tls = { certificate = "a.pem" } }, { address = "0.0.0.0:80" }]
in_flight = 100
"#;
    assert_snapshot!(shown(fragment), @r#"
    error[BS0206]: the bracket of `[::1` is not closed
     --> policy.toml:3:17
      |
    3 | url  = ["http://[::1", "http://[::1:9001", "http://[::1]:9001"]
      |                 ^^^^
      |
      = help: write `]` after the IPv6 address, before the port

    error[BS0206]: the bracket of `[::1:9001` is not closed
     --> policy.toml:3:32
      |
    3 | url  = ["http://[::1", "http://[::1:9001", "http://[::1]:9001"]
      |                                ^^^^^^^^^
      |
      = help: write `]` after the IPv6 address, before the port

    error[BS0216]: the bracket of `[::1:80` is not closed
     --> policy.toml:4:8
      |
    4 | host = "[::1:80"
      |        ^^^^^^^^^
      |
      = help: write `]` after the IPv6 address, before the port

    error[BS0106]: TLS to clients: not available in this version
     --> policy.toml:7:41
      |
    7 | listen    = [{ address = "0.0.0.0:443", tls = { certificate = "a.pem" } }, { address = "0.0.0.0:80" }]
      |                                         ^^^
      |
      = help: remove it; a rule that cannot be kept is never ignored silently

    error[BS0104]: `gateway.listen[1]` must be an address such as "127.0.0.1:8080"
     --> policy.toml:7:76
      |
    7 | listen    = [{ address = "0.0.0.0:443", tls = { certificate = "a.pem" } }, { address = "0.0.0.0:80" }]
      |                                                                            ^^^^^^^^^^^^^^^^^^^^^^^^^^ this is a table
    "#);
}
