//! Drill files: what is wrong with one is told with line and column, and what is right is read as it is written.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

use std::time::Duration;

use backstop_policy::{Code, DrillFaultKind, DrillSettings, Loaded, NoFiles, parse, parse_drill};

fn policy() -> Loaded {
    let text = r#"
        [gateway]
        listen    = "127.0.0.1:8080"
        in_flight = 100

        [dependency.catalog]
        url = "http://127.0.0.1:9001"

        [route.reviews.cached_read]
        match      = "GET /reviews/{product}"
        cache      = { url = "redis://127.0.0.1:6379", ttl = "5s" }
        dependency = "catalog"
        deadline   = "300ms"
        in_flight  = 20
        key        = ["path.product"]
        correct    = { type = "application/json" }
    "#;
    parse(text, "policy.toml", &NoFiles).unwrap()
}

const FIRST: &str = "duration = \"2s\"\nload = [{ request = \"GET /reviews/1\" }]\n";

fn read(rest: &str) -> Result<DrillSettings, Vec<(Code, u32, u32)>> {
    let read = parse_drill(&format!("{FIRST}{rest}"), "drill.toml", &policy());
    let place = |diagnostics: Vec<backstop_policy::Diagnostic>| {
        diagnostics.iter().map(|one| (one.code, one.place.start.line, one.place.start.column)).collect()
    };
    read.map_err(place)
}

fn fault(lines: &str) -> Result<DrillSettings, Vec<(Code, u32, u32)>> {
    read(&format!("[[fault]]\n{lines}"))
}

/// Lines 1 and 2 are the duration and the load, so a fault's first key is on line 4.
#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases: [(&str, Code, u32, u32); 12] = [
        (
            "dependency = \"catalogue\"\nkind = \"hang\"\nfrom = \"0\"\nto = \"1s\"",
            Code::UnknownReference,
            4,
            14,
        ),
        ("dependency = \"catalog\"\nkind = \"hangs\"\nfrom = \"0\"\nto = \"1s\"", Code::UnknownChoice, 5, 8),
        ("dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"1s\"\nto = \"1s\"", Code::OutOfRange, 7, 6),
        ("dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"1s\"\nto = \"3s\"", Code::OutOfRange, 7, 6),
        ("dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"0\"", Code::MissingKey, 3, 1),
        ("dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"0\"\nto = 1", Code::Duration, 7, 6),
        (
            "dependency = \"catalog\"\nkind = \"refuse\"\nfrom = \"0\"\nto = \"1s\"\nshare = \"50%\"",
            Code::OutOfRange,
            8,
            9,
        ),
        (
            "dependency = \"127.0.0.1:6379/0\"\nkind = \"status\"\nfrom = \"0\"\nto = \"1s\"",
            Code::UnknownChoice,
            5,
            8,
        ),
        (
            "dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"0\"\nto = \"1s\"\ndealy = \"1s\"",
            Code::UnknownKey,
            8,
            1,
        ),
        (
            "dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"0\"\nto = \"1s\"\n[[expect]]\nfrom = \"1s\"",
            Code::AtLeastOne,
            8,
            1,
        ),
        (
            "dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"0\"\nto = \"1s\"\n[[expect]]\ncalls = 1",
            Code::MissingKey,
            8,
            1,
        ),
        (
            "dependency = \"catalog\"\nkind = \"hang\"\nfrom = \"0\"\nto = \"1s\"\n[[expect]]\noutcome = \"fine\"",
            Code::UnknownReference,
            9,
            11,
        ),
    ];
    for (lines, code, line, column) in cases {
        assert_eq!(fault(lines).unwrap_err(), [(code, line, column)], "{lines}");
    }
    let wrong =
        parse_drill("duration = \"2s\"\nload = [{ request = \"/reviews/1\" }]\n", "drill.toml", &policy());
    assert_eq!(wrong.unwrap_err()[0].code, Code::Match);
    let wrong = parse_drill("duration = \"2h\"\nload = []\n", "drill.toml", &policy()).unwrap_err();
    assert_eq!(wrong.iter().map(|one| one.code).collect::<Vec<_>>(), [Code::OutOfRange, Code::Empty]);
}

#[test]
fn what_is_right_is_read_as_it_is_written() {
    let drill = read(
        "[[fault]]\ndependency = \"catalog\"\nkind = \"slow\"\ndelay = \"70ms\"\nfrom = \"500ms\"\nto = \"1s\"\nshare = \"12.5%\"\n\
         [[expect]]\nroute = \"reviews\"\nstatus = [200, 503]\nat_most = \"5%\"\n\
         [[expect]]\ndependency = \"catalog\"\ncalls = 0\n",
    )
    .unwrap();
    assert!(!drill.sandbox);
    assert_eq!(drill.duration, Duration::from_secs(2));
    let load = &drill.load[0];
    assert_eq!((&*load.method, &*load.target, load.per_second, load.keys), ("GET", "/reviews/1", 10.0, 1));
    let fault = &drill.faults[0];
    assert_eq!(fault.kind, DrillFaultKind::Slow(Duration::from_millis(70)));
    assert_eq!(
        (fault.from, fault.to, fault.per_mille),
        (Duration::from_millis(500), Duration::from_secs(1), 125)
    );
    assert_eq!((drill.expects[0].status.as_slice(), drill.expects[0].at_most), (&[200, 503][..], Some(50)));
    assert_eq!((drill.expects[0].line, drill.expects[1].line), (10, 14));
    assert_eq!(drill.expects[1].calls, Some(0));
}

#[test]
fn the_example_is_right() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let shop = backstop_policy::load(&root.join("shop.toml")).unwrap();
    let drill = backstop_policy::load_drill(&root.join("drill.toml"), &shop).unwrap();
    assert_eq!((drill.load.len(), drill.faults.len(), drill.expects.len()), (3, 2, 4));
}
