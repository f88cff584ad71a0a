//! A panic that is contained is an event like any other: one line of the log.

use backstop_lab::origin::Origin;
use serde_json::Value;

use crate::support::shop::{HOST, SPANISH, written};
use crate::support::{BOUND, Gateway, Policy, products, run};

/// Everything that the gateway says after its start, once `done` holds: a JSON object each.
async fn lines(gateway: &Gateway, done: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let said = || -> Vec<Value> {
        let log = gateway.log();
        let lines = log.iter().filter(|line| {
            !line.starts_with("listening on http://") && !line.starts_with("metrics on http://")
        });
        lines.map(|line| serde_json::from_str(line).expect(line)).collect()
    };
    let waiting = async {
        while !done(&said()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let came = tokio::time::timeout(BOUND, waiting).await;
    assert!(came.is_ok(), "{:#?}", gateway.log());
    said()
}

#[test]
fn a_panic_is_one_line_of_the_log() {
    run(async {
        let gateway = Gateway::start(&Policy::shop("127.0.0.1:9".parse().unwrap()));
        gateway.hand().panic();
        let is_panic = |line: &Value| line["target"] == "backstop::panic";
        let lines = lines(&gateway, |lines| lines.iter().any(is_panic)).await;
        let [line] = &lines.into_iter().filter(is_panic).collect::<Vec<_>>()[..] else { panic!("one line") };
        assert_eq!((&line["level"], &line["thread"]), (&"ERROR".into(), &"doomed".into()), "{line}");
        assert_eq!(line["panic"], "asked for\nin two lines");
        let location = line["location"].as_str().unwrap();
        assert!(location.contains("src/test_hooks.rs:"), "{location}");
        assert_eq!(
            line.get("backtrace").is_some(),
            std::env::var_os("RUST_BACKTRACE").is_some_and(|set| set != "0")
        );
        assert_eq!(gateway.get("/elsewhere", &[]).await.status(), 502, "the process goes on");
    });
}

/// The database's own code may panic over what it finds; it says so through the log alone.
#[test]
fn a_damaged_file_breaks_no_line_of_the_log() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let policy =
            Policy::shop(origin.addr()).store("snapshots = { memory = \"16 MiB\", disk = \"16 MiB\" }");
        for at in [16, 17] {
            let mut gateway = Gateway::start(&policy);
            HOST.clone_into(&mut gateway.host);
            gateway.get("/p/1", &SPANISH).await;
            written(&gateway, 1).await;
            let folder = gateway.stop();
            let file = folder.join("backstop-data/copies.redb");
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[at] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            let gateway = Gateway::start_in(&folder, &policy);
            assert_eq!(gateway.get("/p/1", &[SPANISH[0], SPANISH[1], ("Host", HOST)]).await.status(), 200);
            let about_the_store = |line: &Value| line["target"] == "backstop::store";
            lines(&gateway, |lines| lines.iter().any(about_the_store)).await;
        }
    });
}
