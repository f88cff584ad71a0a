//! What `check` shows, as people and programs see it.

mod support;

use std::path::Path;

use backstop_policy::{Code, NoFiles, load, parse, render_human, render_json};
use insta::assert_snapshot;
use support::{diagnosed, parsed};

fn shown(fragment: &str) -> String {
    let (text, diagnostics) = diagnosed(fragment);
    render_human(&diagnostics, &text, false)
}

#[test]
fn several_syntax_errors_and_several_other_errors_in_one_pass() {
    let fragment = r#"
[route.description.public_read]
match      = "GET /products/{product}"
dependency = "catalog"
deadline   = 300ms
in_flight  = 0
max_age    = "60"
languages  = ["pt_BR", "en"
key        = ["path.product"]

[route.description.public_read]
dedline = "1s"
"#;
    assert_snapshot!(shown(fragment), @r#"
    error[BS0002]: string values must be quoted, expected literal string
     --> policy.toml:5:14
      |
    5 | deadline   = 300ms
      |              ^^^^^
      |
      = help: put it in double quotes, durations and sizes too: `"300ms"`

    error[BS0203]: `route.description.public_read.in_flight` must be greater than zero
     --> policy.toml:6:14
      |
    6 | in_flight  = 0
      |              ^

    error[BS0201]: `60` has no unit
     --> policy.toml:7:14
      |
    7 | max_age    = "60"
      |              ^^^^
      |
      = help: write the unit, such as `"60ms"` or `"60s"`

    error[BS0002]: this list is never closed
     --> policy.toml:8:14
      |
    8 | languages  = ["pt_BR", "en"
      |              ^
      |
      = help: add `]`; what follows could not be read
    "#);
}

#[test]
fn several_errors_of_every_stage_in_one_pass() {
    let fragment = r#"
[gateway]
listen    = "localhost:8080"
admin     = "127.0.0.1:9901"
in_flight = 100
tls       = {}
drain     = "1s"
colour    = "red"

[dependency.catalog]
url     = "https://catalog.internal"
connect = "500ms"
tls     = { verify = false }

[store]
ledger = "postgresql"

[route.page.direct]
match      = ["GET /p/{id}", "GET /p/{id*}/x", "get /q"]
dependency = "catlog"
deadline   = "400ms"
in_flight  = 10
withdraws  = ["pages", "page"]
"#;
    assert_snapshot!(shown(fragment), @r#"
    error[BS0205]: `localhost:8080` is not an IP address with a port
     --> policy.toml:3:13
      |
    3 | listen    = "localhost:8080"
      |             ^^^^^^^^^^^^^^^^
      |
    help: write
      |
    3 - listen    = "localhost:8080"
    3 + listen    = "127.0.0.1:8080"
      |

    error[BS0106]: TLS to clients: not available in this version
     --> policy.toml:6:1
      |
    6 | tls       = {}
      | ^^^
      |
      = help: remove it; a rule that cannot be kept is never ignored silently

    error[BS0101]: unknown key `gateway.colour`
     --> policy.toml:8:1
      |
    8 | colour    = "red"
      | ^^^^^^
      |
      = help: known here: `name`, `listen`, `admin`, `mode`, `in_flight`, `instances`, `threads`, `trusted`, `limits`, `buffer_memory`, `drain`, `attention`

    error[BS0106]: TLS to dependencies: not available in this version
      --> policy.toml:11:12
       |
    11 | url     = "https://catalog.internal"
       |            ^^^^^
       |
       = help: use `http://` on a trusted network, or a local TLS sidecar

    error[BS0106]: TLS to dependencies (`tls`): not available in this version
      --> policy.toml:13:1
       |
    13 | tls     = { verify = false }
       | ^^^
       |
       = help: remove it; a rule that cannot be kept is never ignored silently

    error[BS0106]: a ledger in PostgreSQL: not available in this version
      --> policy.toml:16:10
       |
    16 | ledger = "postgresql"
       |          ^^^^^^^^^^^^
       |
       = help: remove it; a rule that cannot be kept is never ignored silently

    error[BS0215]: a rest `{name*}` can only be the last segment
      --> policy.toml:19:38
       |
    19 | match      = ["GET /p/{id}", "GET /p/{id*}/x", "get /q"]
       |                                      ^^^^^

    error[BS0215]: `get` is not a method
      --> policy.toml:19:49
       |
    19 | match      = ["GET /p/{id}", "GET /p/{id*}/x", "get /q"]
       |                                                 ^^^
       |
       = help: write it in capitals, such as `GET`, or `*` for any method

    error[BS0301]: no dependency is named `catlog`
      --> policy.toml:20:14
       |
    20 | dependency = "catlog"
       |              ^^^^^^^^
       |
    help: did you mean `catalog`?
       |
    20 | dependency = "catalog"
       |                  +

    error[BS0301]: no route is named `pages`
      --> policy.toml:23:15
       |
    23 | withdraws  = ["pages", "page"]
       |               ^^^^^^^
       |
    help: did you mean `page`?
       |
    23 - withdraws  = ["pages", "page"]
    23 + withdraws  = ["page", "page"]
       |

    error[BS0309]: the route `page` keeps no copies that could be withdrawn
      --> policy.toml:23:24
       |
    18 | [route.page.direct]
       | ------------------- its class keeps none
    ...
    23 | withdraws  = ["pages", "page"]
       |                        ^^^^^^
       |
       = help: name routes of the class `public_read`, or `cached_read`
    "#);
}

#[test]
fn an_unsafe_mix_has_no_key_to_be_written_in() {
    let fragment = r#"
[route.pay.direct]
match              = "POST /payments"
dependency         = "catalog"
deadline           = "1s"
in_flight          = 10
fallback_in_flight = 5
otherwise          = { omit = { status = 200 } }
"#;
    assert_snapshot!(shown(fragment), @r#"
    error[BS0107]: `fallback_in_flight` belongs to the classes `public_read`, `cached_read`, `optional`
     --> policy.toml:7:1
      |
    7 | fallback_in_flight = 5
      | ^^^^^^^^^^^^^^^^^^
      |
      = help: remove it, or change the class of `route.pay.direct`

    error[BS0107]: `otherwise` belongs to the class `optional`
     --> policy.toml:8:1
      |
    8 | otherwise          = { omit = { status = 200 } }
      | ^^^^^^^^^
      |
      = help: remove it, or change the class of `route.pay.direct`
    "#);
}

#[test]
fn columns_and_underlines_hold_beside_wide_and_long_characters() {
    let fragment =
        "[route.\"página\".direct]\n[route.a.direct]\nfunction = \"日本\"\t# ü\nhost = \"españa.example\"\n";
    assert_snapshot!(shown(fragment), @r#"
    error[BS0102]: `route.página.direct.match` is missing
     --> policy.toml:1:1
      |
    1 | [route."página".direct]
      | ^^^^^^^^^^^^^^^^^^^^^^^ add `match` here

    error[BS0102]: `route.página.direct.dependency` is missing
     --> policy.toml:1:1
      |
    1 | [route."página".direct]
      | ^^^^^^^^^^^^^^^^^^^^^^^ add `dependency` here

    error[BS0103]: `route.página.direct.deadline` is missing and has no default
     --> policy.toml:1:1
      |
    1 | [route."página".direct]
      | ^^^^^^^^^^^^^^^^^^^^^^^ add `deadline` here
      |
      = help: it is your promise to clients and to the dependency: only you can state it

    error[BS0103]: `route.página.direct.in_flight` is missing and has no default
     --> policy.toml:1:1
      |
    1 | [route."página".direct]
      | ^^^^^^^^^^^^^^^^^^^^^^^ add `in_flight` here
      |
      = help: it is your promise to clients and to the dependency: only you can state it

    error[BS0108]: `á` may not stand in a name
     --> policy.toml:1:10
      |
    1 | [route."página".direct]
      |          ^
      |
      = help: a name is a letter, then letters, digits, `_`, `-` or `.`

    error[BS0102]: `route.a.direct.match` is missing
     --> policy.toml:2:1
      |
    2 | [route.a.direct]
      | ^^^^^^^^^^^^^^^^ add `match` here

    error[BS0102]: `route.a.direct.dependency` is missing
     --> policy.toml:2:1
      |
    2 | [route.a.direct]
      | ^^^^^^^^^^^^^^^^ add `dependency` here

    error[BS0103]: `route.a.direct.deadline` is missing and has no default
     --> policy.toml:2:1
      |
    2 | [route.a.direct]
      | ^^^^^^^^^^^^^^^^ add `deadline` here
      |
      = help: it is your promise to clients and to the dependency: only you can state it

    error[BS0103]: `route.a.direct.in_flight` is missing and has no default
     --> policy.toml:2:1
      |
    2 | [route.a.direct]
      | ^^^^^^^^^^^^^^^^ add `in_flight` here
      |
      = help: it is your promise to clients and to the dependency: only you can state it

    error[BS0108]: the name `日本` does not begin with a letter
     --> policy.toml:3:12
      |
    3 | function = "日本"    # ü
      |            ^^^^^^

    error[BS0216]: `españa.example` is not a host
     --> policy.toml:4:9
      |
    4 | host = "españa.example"
      |         ^^^^^^^^^^^^^^
      |
      = help: write an international name in its ASCII form (`xn--...`), as browsers send it
    "#);
}

#[test]
fn programs_get_stable_json() {
    let (_, diagnostics) = diagnosed("[store]\npaht = \"data\"\n");
    let json = render_json(&diagnostics[..1]);
    assert_snapshot!(format!("{json:#}"), @r#"
    [
      {
        "code": "BS0101",
        "column": 1,
        "docs": "docs/diagnostics/BS0101.md",
        "end": {
          "column": 5,
          "line": 2
        },
        "file": "policy.toml",
        "fix": {
          "column": 1,
          "end": {
            "column": 5,
            "line": 2
          },
          "line": 2,
          "replacement": "path"
        },
        "help": "did you mean `path`?",
        "label": null,
        "line": 2,
        "message": "unknown key `store.paht`",
        "not_shown": null,
        "related": [],
        "severity": "error"
      }
    ]
    "#);
}

#[test]
fn related_places_are_in_the_json() {
    let (_, diagnostics) =
        diagnosed("[gateway]\nlisten = \"127.0.0.1:80\"\nadmin = \"127.0.0.1:80\"\nin_flight = 100\n");
    let json = render_json(&diagnostics);
    assert_eq!(json[0]["code"], "BS0312");
    assert_eq!(json[0]["line"], 3);
    assert_eq!(json[0]["related"][0]["line"], 2);
    assert_eq!(json[0]["related"][0]["end"]["column"], 24);
}

#[test]
fn colour_is_only_there_when_asked_for() {
    let (text, diagnostics) = diagnosed("[store]\npaht = \"data\"\n");
    assert!(!render_human(&diagnostics, &text, false).contains('\u{1b}'));
    assert!(render_human(&diagnostics, &text, true).contains('\u{1b}'));
}

#[test]
fn an_unreadable_file_is_a_diagnostic_too() {
    let refused = load(Path::new("/nowhere/policy.toml")).unwrap_err();
    assert_eq!(refused.diagnostics.len(), 1);
    assert_eq!(refused.diagnostics[0].code, Code::Unreadable);
    assert_snapshot!(refused.to_string(), @r#"
    the policy is refused

    error[BS0001]: cannot read `/nowhere/policy.toml`: No such file or directory (os error 2)
     |
     = help: check the path and the permissions
    "#);
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_with_the_byte() {
    let folder = std::env::temp_dir().join(format!("backstop-policy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("policy.toml");
    std::fs::write(&path, b"# \xc3\xa9\na = \"\xff\xfe\"\n").unwrap();
    let refused = load(&path).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(refused.diagnostics[0].code, Code::Unreadable);
    assert_eq!(refused.diagnostics[0].place.bytes.start, 10);
    let shown = refused.to_string().replace(&format!("{}/", folder.display()), "");
    assert_snapshot!(shown, @r#"
    the policy is refused

    error[BS0001]: the file is not UTF-8: byte 0xFF at offset 10
     --> policy.toml:2:6
      |
    2 | a = "��"
      |      ^
      |
      = help: save it as UTF-8, the one encoding that TOML has
    "#);
}

#[test]
fn one_error_refuses_the_whole_file_and_lints_wait_until_there_is_none() {
    let codes =
        |fragment: &str| diagnosed(fragment).1.iter().map(|diagnostic| diagnostic.code).collect::<Vec<_>>();
    assert_eq!(codes("[store]\npath = \"/tmp/x\"\npaht = \"x\"\n"), [Code::UnknownKey]);
    assert!(parsed("[store]\npaht = \"x\"\n").1.is_err());
    assert_eq!(codes("[store]\npath = \"/tmp/x\"\n"), [Code::TemporaryStore, Code::Unmeasured]);
}

#[test]
fn after_a_syntax_error_nothing_is_said_to_be_missing() {
    let diagnostics = parse("[gateway\nlisten = 1\n", "policy.toml", &NoFiles).unwrap_err();
    assert!(diagnostics.iter().all(|d| d.code != Code::MissingKey), "{diagnostics:#?}");
    assert_eq!(diagnostics[0].code, Code::Syntax);
}

#[test]
fn more_tables_than_can_be_numbered_are_refused() {
    let many: String = (0..65_536).map(|n| format!("[dependency.d{n}]\nurl = \"http://x\"\n")).collect();
    let diagnostics = parsed(&many).1.unwrap_err();
    assert!(diagnostics.iter().any(|d| d.code == Code::OutOfRange), "{:?}", &diagnostics[..2]);
}
