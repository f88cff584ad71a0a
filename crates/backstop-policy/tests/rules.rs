//! Rules with more than one way to break them: each way leads to the code that its page describes.

mod support;

use backstop_policy::Code;
use support::{errors, parsed, refused};

/// A public read with these further lines.
fn read(lines: &str) -> String {
    format!(
        "[route.x.public_read]\nmatch = \"GET /x/{{id}}\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\n\
         in_flight = 10\nmax_age = \"60s\"\n{lines}\n"
    )
}

/// A direct route with these further lines.
fn direct(lines: &str) -> String {
    format!(
        "[route.x.direct]\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 10\n{lines}\n{}",
        if lines.contains("match") { "" } else { "match = \"GET /x\"" }
    )
}

#[track_caller]
fn accepted(fragment: &str) {
    assert_eq!(errors(fragment), [], "{fragment}");
}

#[test]
fn matches() {
    for good in [
        "*",
        "* /",
        "GET /",
        "GET /a/",
        "M-SEARCH /a",
        "GET /a/{b}/{c*}",
        "GET /%C3%B1/%2F",
        "GET /a;v=1:2@x",
    ] {
        accepted(&direct(&format!("match = {good:?}")));
    }
    for bad in [
        "",
        "GET",
        "/a",
        "get /a",
        "GET,PUT /a",
        "CONNECT /a",
        "TRACE /a",
        "GET a",
        "GET /a//b",
        "GET /a/../b",
        "GET /{a}/{a}",
        "GET /{a}/{a*}",
        "GET /{}",
        "GET /{1a}",
        "GET /{a*}/b",
        "GET /a{b}",
        "GET /a*",
        "GET /a?b=1",
        "GET /ñ",
        "GET /%zz",
        "GET /%a",
        "GET /%61",
        "GET /x/%c3%b1",
        "GET /a%2fb",
        "GET /%2E%2e/x",
        "GET  /a",
        "GET /a b",
    ] {
        refused(&direct(&format!("match = {bad:?}")), Code::Match);
    }
}

#[test]
fn routes_of_equal_rank() {
    let two =
        |one: &str, other: &str| format!("{}\n{}", direct(one), direct(other).replace("route.x", "route.y"));
    refused(&two("match = \"* /{a*}\"", "match = \"*\""), Code::SameMatch);
    refused(&two("host = [\"a.b\", \"*.c\"]", "host = \"*.C\""), Code::SameMatch);
    accepted(&two("host = \"a.b\"", "host = \"*.b\""));
    accepted(&two("host = \"a.b\"", ""));
    accepted(&two("match = \"GET /x\"", "match = \"* /x\""));
    accepted(&two("match = \"GET /x\"", "match = \"GET /x/\""));
    accepted(&two("match = \"GET /{x}\"", "match = \"GET /{x*}\""));
    refused(&direct("match = [\"GET /{a}\", \"GET /{b}\"]"), Code::Repeated);
}

#[test]
fn hosts() {
    for good in ["a", "a.example", "*.a.example", "A_B.example", "10.0.0.1", "[::1]", "xn--espaa-rta.example"]
    {
        accepted(&direct(&format!("host = {good:?}")));
    }
    for bad in
        ["", "a..b", "*", "a.*.b", "*a.b", "a.example:80", "http://a", "españa.example", ".a", "[::1", "a b"]
    {
        refused(&direct(&format!("host = {bad:?}")), Code::Host);
    }
    let fixed = |host: &str| format!("[dependency.catalog]\nurl = \"http://x\"\nhost = {host:?}\n");
    for good in ["a.example", "a.example:8080", "[::1]:80", "[::1]"] {
        accepted(&fixed(good));
    }
    for bad in ["", "a:0", "a:x", "*.a", "a/b", "::1"] {
        refused(&fixed(bad), Code::Host);
    }
}

#[test]
fn header_edits() {
    for name in [
        "connection",
        "Host",
        "content-length",
        "Transfer-Encoding",
        "te",
        "upgrade",
        "keep-alive",
        "trailer",
    ] {
        refused(&direct(&format!("request_headers = {{ remove = {name:?} }}")), Code::ReservedHeader);
        refused(
            &direct(&format!("response_headers = {{ set = {{ {name} = \"x\" }} }}")),
            Code::ReservedHeader,
        );
    }
    for name in [
        "Date",
        "age",
        "Cache-Control",
        "CDN-Cache-Control",
        "x-my-cache-control",
        "backstop-cache-control",
        "Surrogate-Control",
        "backstop",
        "cache-status",
        "proxy-status",
        "expires",
        "via",
        "Content-Type",
        "content-encoding",
        "content-range",
    ] {
        refused(
            &direct(&format!("response_headers = {{ set = {{ {name} = \"x\" }} }}")),
            Code::ReservedHeader,
        );
        refused(&direct(&format!("response_headers = {{ remove = {name:?} }}")), Code::ReservedHeader);
    }
    accepted(&direct(
        "request_headers = { set = { cache-control = \"no-cache\", x-a = \"\" }, remove = [\"x-b\"] }",
    ));
    accepted(&direct(
        "request_headers = { set = { content-type = \"text/plain\", cdn-cache-control = \"x\" } }",
    ));
    accepted(&direct(
        "response_headers = { set = { cache-controls = \"x\" }, remove = [\"content-language\"] }",
    ));
    for name in ["range", "if-range", "if-modified-since", "cache-control"] {
        let edit = format!("request_headers = {{ set = {{ {name} = \"x\" }} }}");
        refused(&read(&edit), Code::ReservedHeader);
        accepted(&direct(&edit));
    }
    // A proxy must send Via (RFC 9110 section 7.6.3), and by it a loop is seen.
    for name in ["via", "Via", "backstop-attempt"] {
        refused(
            &direct(&format!("request_headers = {{ set = {{ {name} = \"x\" }} }}")),
            Code::ReservedHeader,
        );
        refused(&direct(&format!("request_headers = {{ remove = [{name:?}] }}")), Code::ReservedHeader);
        refused(&read(&format!("request_headers = {{ remove = {name:?} }}")), Code::ReservedHeader);
    }
    // Asked for after every edit, because a coded body cannot be looked into.
    for edit in ["set = { accept-encoding = \"gzip\" }", "remove = [\"Accept-Encoding\"]"] {
        let edit = format!("request_headers = {{ {edit} }}");
        refused(&read(&edit), Code::ReservedHeader);
        accepted(&direct(&edit));
    }
    for value in ["a\\nb", "\\u0000", " a", "a ", "ñ", "a\\r\\nb: c"] {
        refused(&direct(&format!("request_headers = {{ set = {{ x-a = \"{value}\" }} }}")), Code::Header);
    }
    let negotiated = read("languages = [\"es\"]\nrequest_headers = { remove = \"Accept-Language\" }");
    refused(&negotiated, Code::ReservedHeader);
}

#[test]
fn key_parts() {
    accepted(&read("key = [\"path.id\", \"query.page\", \"header.X-Tenant\"]"));
    for bad in
        ["", "id", "path.", "header.a b", "header.authorization", "header.Cookie", "header.host", "tenant.x"]
    {
        refused(&read(&format!("key = [{bad:?}]")), Code::KeyPart);
    }
    refused(&read("correct = { echo = { \"/id\" = \"path.product\" } }"), Code::KeyParameter);
    refused(&read("correct = { echo = { \"/lang\" = \"language\" } }"), Code::NoLanguages);
    refused(&read("languages = []\nkey = [\"language\"]"), Code::NoLanguages);
    refused(&read("languages = [\"es\", \"en\"]"), Code::LanguageNotInKey);
    accepted(&read("languages = [\"es\"]"));
}

#[test]
fn pointers_and_media_types() {
    accepted(&read("correct = { type = \"Application/vnd.x+json\", has = [\"\", \"/\", \"/a~1b/~0\"] }"));
    for rule in ["has = [\"/id\"]", "echo = { \"/id\" = \"path.id\" }"] {
        refused(&read(&format!("correct = {{ type = \"text/html\", {rule} }}")), Code::NotJson);
        for good in ["type = \"application/problem+json\", ", "type = \"APPLICATION/JSON\", ", ""] {
            accepted(&read(&format!("correct = {{ {good}{rule} }}")));
        }
    }
    accepted(&read("correct = { type = \"text/html\", has = [], echo = {} }"));
    for bad in ["a", "/~", "/~2", "#/a"] {
        refused(&read(&format!("correct = {{ has = [{bad:?}] }}")), Code::Pointer);
    }
    for bad in ["", "json", "a/b/c", "a/ b", "text/html;charset=utf-8", "*/*"] {
        refused(&read(&format!("correct = {{ type = {bad:?} }}")), Code::MediaType);
    }
}

#[test]
fn stand_ins() {
    let optional = |otherwise: &str| {
        format!(
            "[route.x.optional]\nmatch = \"GET /x\"\ndependency = \"catalog\"\ndeadline = \"80ms\"\nin_flight = 5\n\
             otherwise = {otherwise}\n"
        )
    };
    for good in [
        "{ prepared = \"general.json\" }",
        "{ prepared = \"general.bin\", type = \"application/octet-stream\" }",
        "{ omit = {} }",
        "{ omit = { status = 204 } }",
        "{ omit = { type = \"text/plain\", body = \"none\" } }",
    ] {
        accepted(&optional(good));
    }
    for bad in ["\"missing.json\"", "\"broken.json\"", "\"general.bin\""] {
        refused(&optional(&format!("{{ prepared = {bad} }}")), Code::PreparedFile);
    }
    for bad in [
        "{ status = 302 }",
        "{ status = 206 }",
        "{ status = 204, type = \"text/plain\", body = \"x\" }",
        "{ body = \"x\" }",
        "{ type = \"application/json\", body = \"{\" }",
        "{ status = 200, type = \"application/json\" }",
    ] {
        refused(&optional(&format!("{{ omit = {bad} }}")), Code::OmitStatus);
    }
    refused(&optional("{}"), Code::ExactlyOne);
    refused(&optional("{ type = \"text/plain\", omit = {} }"), Code::ExactlyOne);
}

#[test]
fn statuses() {
    for bad in (200..500).filter(|&status| status != 429) {
        refused(&direct(&format!("declared = [{bad}]")), Code::NeverFailure);
    }
    for bad in ["0", "99", "100", "600", "-1", "70000"] {
        refused(&direct(&format!("declared = [{bad}]")), Code::Status);
    }
    refused(&direct("declared = [500, 500]"), Code::Repeated);
    accepted(&direct("declared = [429, 500, 501, 599]"));
    let gone = |status: u16| read(&format!("gone = {{ status = [{status}] }}"));
    for status in (300..500).filter(|status| ![304, 429].contains(status)) {
        accepted(&gone(status));
    }
    for status in (200..300).chain([304, 429]).chain(500..600) {
        refused(&gone(status), Code::NeverGone);
    }
    for status in [100, 199, 600] {
        refused(&gone(status), Code::Status);
    }
}

#[test]
fn prefixes() {
    accepted(&direct("match = [\"GET /a/b\", \"PUT /a/{c}\", \"* /a/{rest*}\"]\nstrip_prefix = \"/a\""));
    refused(&direct("match = \"GET /ab\"\nstrip_prefix = \"/a\""), Code::StripPrefix);
    refused(&direct("match = \"*\"\nstrip_prefix = \"/a\""), Code::StripPrefix);
    accepted(&direct("match = \"GET /%2F/b\"\nstrip_prefix = \"/%2F\""));
    for bad in ["a", "/", "/a/", "/{a}", "/a//b", "", "/%61", "/%2f", "/é"] {
        refused(&direct(&format!("match = \"GET /a/b\"\nstrip_prefix = {bad:?}")), Code::Match);
    }
}

#[test]
fn numbers() {
    for (value, code) in [("0", Code::Zero), ("-1", Code::OutOfRange), ("4294967296", Code::OutOfRange)] {
        refused(&direct("").replace("in_flight = 10", &format!("in_flight = {value}")), code);
    }
    accepted(&direct("").replace("in_flight = 10", "in_flight = 0x0A"));
    refused(&direct("").replace("in_flight = 10", "in_flight = 1.5"), Code::WrongType);
    for (value, code) in [("\"0\"", Code::Zero), ("300", Code::Duration), ("\"10000h\"", Code::OutOfRange)] {
        refused(&direct("").replace("\"300ms\"", value), code);
    }
    let head = |size: &str| {
        format!("[gateway]\nlisten = \"[::1]:1\"\nin_flight = 1000\nlimits = {{ head = {size:?} }}\n")
    };
    accepted(&head("8 KiB"));
    for (size, code) in [("8191 B", Code::OutOfRange), ("1 B", Code::OutOfRange), ("0", Code::Zero)] {
        refused(&head(size), code);
    }
    for disk in ["0", "0 B", "1 MiB", "1024 KiB"] {
        accepted(&format!("[store]\nsnapshots = {{ disk = {disk:?} }}\n"));
    }
    for disk in ["1 B", "1023 KiB", "1048575 B"] {
        refused(&format!("[store]\nsnapshots = {{ disk = {disk:?} }}\n"), Code::OutOfRange);
    }
    refused("[store]\nsnapshots = { memory = 64 }\n", Code::Size);
    refused("[store]\nsnapshots = { memory = \"9999 TiB\" }\n", Code::OutOfRange);
    let room = "[store]\nsnapshots = { memory = \"0\", disk = \"0\" }\n";
    refused(&(room.to_owned() + &read("")), Code::NoRoom);
    accepted(room);
}

/// A gateway with these addresses, and a dependency with this URL.
fn addresses(listen: &str, admin: Option<&str>, url: &str) -> String {
    let admin = admin.map(|admin| format!("admin = {admin:?}\n")).unwrap_or_default();
    format!("[gateway]\nlisten = {listen}\n{admin}in_flight = 1000\n[dependency.catalog]\nurl = {url:?}\n")
}

#[test]
fn listeners_never_share_an_address() {
    let own = |listen: &str, admin: Option<&str>| addresses(listen, admin, "http://192.0.2.1:9001");
    for (one, other) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("0.0.0.0:8080", "127.0.0.1:8080"),
        ("0.0.0.0:8080", "10.0.0.7:8080"),
        ("[::]:8080", "[::1]:8080"),
        ("[::]:8080", "127.0.0.1:8080"),
        ("[::]:8080", "0.0.0.0:8080"),
        ("0.0.0.0:8080", "[::ffff:127.0.0.1]:8080"),
        ("127.0.0.1:8080", "[::ffff:127.0.0.1]:8080"),
    ] {
        for (one, other) in [(one, other), (other, one)] {
            refused(&own(&format!("[{one:?}, {other:?}]"), None), Code::SameAddress);
            refused(&own(&format!("{one:?}"), Some(other)), Code::SameAddress);
        }
    }
    for taken in ["127.0.0.1:9901", "0.0.0.0:9901", "[::]:9901"] {
        refused(&own(&format!("{taken:?}"), None), Code::SameAddress);
        accepted(&own(&format!("{taken:?}"), Some("127.0.0.1:9902")));
    }
    for apart in [
        r#"["127.0.0.1:8080", "127.0.0.1:8081"]"#,
        r#"["127.0.0.1:8080", "127.0.0.2:8080"]"#,
        r#"["0.0.0.0:8080", "[::1]:8080"]"#,
        r#"["0.0.0.0:8080", "127.0.0.1:8081"]"#,
        r#"["127.0.0.1:0", "127.0.0.1:0", "0.0.0.0:0"]"#,
        r#"["[fe80::1%1]:8080", "[fe80::1%2]:8080"]"#,
        r#""[::1]:9901""#,
    ] {
        accepted(&own(apart, None));
    }
}

/// The same address in another spelling is the same address: of two in one list, half of all calls would go there, and
/// what fails there would be tried there again.
#[test]
fn one_address_stands_once_in_a_list() {
    let listed = |urls: &str| format!("[dependency.catalog]\nurl = {urls}\n");
    for twice in [
        r#"["http://10.0.0.7:9001", "http://10.0.0.7:9001"]"#,
        r#"["http://catalog", "http://CATALOG:80/"]"#,
        r#"["http://[::1]:9001", "http://[0:0:0:0:0:0:0:1]:9001"]"#,
        r#"["http://10.0.0.7:9001", "http://[::ffff:10.0.0.7]:9001"]"#,
        r#"["http://localhost:9001", "http://127.0.0.1:9001"]"#,
        r#"["http://10.0.0.8:9001", "http://0.0.0.0:9001", "http://127.0.0.1:9001"]"#,
    ] {
        refused(&listed(twice), Code::Repeated);
    }
    accepted(&listed(r#"["http://catalog:9001", "http://catalog:9002", "http://10.0.0.7:9001"]"#));
    accepted(&listed(r#"["http://127.0.0.1:9001", "http://127.0.0.2:9001", "http://[::1]:9001"]"#));
}

#[test]
fn a_gateway_never_calls_itself() {
    let calls = |listen: &str, url: &str| addresses(&format!("{listen:?}"), None, url);
    for (listen, url) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("127.0.0.1:8080", "http://LOCALHOST:8080/"),
        ("127.0.0.1:8080", "http://0.0.0.0:8080"),
        ("127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080"),
        ("127.0.0.1:80", "http://shop.localhost"),
        ("0.0.0.0:8080", "http://127.0.0.2:8080"),
        ("[::]:8080", "http://127.0.0.1:8080"),
        ("[::]:8080", "http://[::1]:8080"),
        ("[::1]:8080", "http://[::]:8080"),
        ("10.0.0.7:8080", "http://10.0.0.7:8080"),
        ("127.0.0.1:8080", "http://127.0.0.1:9901"),
    ] {
        refused(&calls(listen, url), Code::OwnAddress);
    }
    for (listen, url) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8081"),
        ("127.0.0.1:8080", "http://127.0.0.2:8080"),
        ("127.0.0.1:8080", "http://[::1]:8080"),
        ("0.0.0.0:8080", "http://10.0.0.7:8080"),
        ("0.0.0.0:8080", "http://[::1]:8080"),
        ("0.0.0.0:8080", "http://shop.example:8080"),
        ("10.0.0.7:8080", "http://localhost:8080"),
        ("127.0.0.1:0", "http://127.0.0.1:80"),
    ] {
        accepted(&calls(listen, url));
    }
    refused(&addresses("\"127.0.0.1:8080\"", Some("10.0.0.7:1"), "http://10.0.0.7:1"), Code::OwnAddress);
    let several = addresses("\"127.0.0.1:8080\"", None, "http://x")
        .replace("\"http://x\"", "[\"http://127.0.0.1:9001\", \"http://127.0.0.1:8080\"]");
    refused(&several, Code::OwnAddress);
}

#[test]
fn no_duration_is_shorter_than_a_millisecond() {
    let gateway = |line: &str| format!("[gateway]\nlisten = \"[::1]:1\"\nin_flight = 1000\n{line}\n");
    let dependency = |line: &str| format!("[dependency.catalog]\nurl = \"http://x\"\n{line}\n");
    let limits = |key: &str, time: &str| format!("limits = {{ {key} = {time:?} }}");
    for (time, holds) in [("1ms", true), ("1000us", true), ("999us", false), ("1ns", false)] {
        let policies = [
            direct("").replace("\"300ms\"", &format!("{time:?}")),
            direct(&format!("idle = {time:?}")),
            direct(&format!("abandon_hold = {time:?}")),
            direct(&limits("body_time", time)),
            read("").replace("\"60s\"", &format!("{time:?}")),
            gateway(&limits("head_time", time)),
            gateway(&limits("reply_time", time)),
            dependency(&format!("connect = {time:?}")),
            dependency(&format!("queue = {time:?}")),
            dependency(&format!("idle = {time:?}")),
        ];
        for policy in policies {
            if holds { accepted(&policy) } else { refused(&policy, Code::OutOfRange) }
        }
    }
    accepted(&direct("abandon_hold = \"0\""));
    accepted(&dependency("queue = \"0ms\""));
}

#[test]
fn classes() {
    refused("[route.x]\n", Code::RouteClass);
    refused("[route.x.publicread]\n", Code::RouteClass);
    refused(&(direct("") + "\n" + &read("")), Code::RouteClass);
    refused(&(direct("") + "\n[route.x.effect]\n"), Code::RouteClass);
    refused("[route]\nx = 1\n", Code::WrongType);
    refused("[route]\n", Code::Empty);
}

#[test]
fn waivers_silence_exactly_their_code() {
    let waived =
        "[check]\nallow = [{ code = \"BS0511\", reason = \"a test machine\" }]\n[store]\npath = \"/tmp\"\n";
    let loaded = parsed(waived).1.unwrap();
    let codes: Vec<_> = loaded.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [Code::Unmeasured]);
    assert_eq!(loaded.waived.len(), 1);
    assert_eq!(loaded.waived[0].diagnostic.code, Code::TemporaryStore);
    assert_eq!(loaded.waived[0].reason, "a test machine");
    for code in ["BS0703", "BS9999", "0511", ""] {
        refused(&format!("[check]\nallow = [{{ code = {code:?}, reason = \"x\" }}]\n"), Code::UnknownWaiver);
    }
    refused("[check]\nallow = [{ code = \"BS0511\" }]\n", Code::MissingKey);
}
