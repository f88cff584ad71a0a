//! Retries and alternatives: what may be asked after the first call, and why not.

mod support;

use backstop_policy::Code;
use support::{REPLICA, diagnosed, other_read, read, says};

#[test]
fn one_layer_retries() {
    for good in [
        "retry = {}",
        "retry = { attempts = 1 }",
        "retry = { owner = \"client\" }",
        "retry = { attempts = 1, owner = \"upstream\" }",
    ] {
        says(&read(good), &[]);
    }
    for (bad, code) in [
        ("attempts = 3", Code::OutOfRange),
        ("attempts = 0", Code::Zero),
        ("owner = \"clients\"", Code::UnknownChoice),
        ("attempts = 2, owner = \"client\"", Code::TwoRetryLayers),
        ("attempts = 2, owner = \"upstream\"", Code::TwoRetryLayers),
    ] {
        says(&read(&format!("retry = {{ {bad} }}")), &[code]);
    }
    let other = other_read();
    says(&(read("retry = {}") + &other + "retry = { owner = \"upstream\" }\n"), &[Code::TwoRetryLayers]);
    says(&(read("retry = {}") + &other + "retry = { owner = \"client\" }\n"), &[]);
    says(&(read("retry = { attempts = 1 }") + &other + "retry = { owner = \"upstream\" }\n"), &[]);
}

/// Of a deadline of 90 ms, 88 ms are for calls, and 40 % of those are 35.2 ms; 25 ms wait and 10 ms of use are needed.
#[test]
fn both_attempts_have_time() {
    let retried = |deadline: &str| read("retry = {}").replace("\"300ms\"", &format!("{deadline:?}"));
    says(&retried("90ms"), &[]);
    says(&retried("89ms"), &[Code::ShortForTwo]);
    says(&read("").replace("300ms", "89ms"), &[]);
    let phases = |phases: &str| read("retry = {}").replacen("connections = 20", phases, 1);
    says(&phases("connect = \"200ms\"\nqueue = \"74ms\""), &[]);
    says(&phases("connect = \"200ms\"\nqueue = \"75ms\""), &[Code::NoTimeToRetry]);
    says(&phases("connect = \"275ms\""), &[Code::NoTimeToRetry]);
    says(&phases("connect = \"300ms\""), &[Code::PhaseTooLong]);
    says(&phases("connect = \"275ms\"").replace("retry = {}", ""), &[]);
}

#[test]
fn nothing_is_repeated_or_sent_elsewhere_on_a_direct_route() {
    for key in ["retry = {}", "alternative = { dependency = \"replica\" }"] {
        let fragment = format!(
            "{REPLICA}[dependency.catalog]\nurl = \"http://x\"\n[route.pay.direct]\nmatch = \"POST /pay\"\n\
             dependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 10\n{key}\n"
        );
        says(&fragment, &[Code::OtherClass]);
        let (_, diagnostics) = diagnosed(&fragment);
        let help = diagnostics[0].help.clone().unwrap();
        assert!(help.contains("twice") || help.contains("second one"), "it says why: {help}");
    }
}

#[test]
fn alternatives() {
    let verified =
        |file: &str| read(&format!("alternative = {{ dependency = \"replica\", verified = {file:?} }}"));
    says(&verified("evidence/replica.toml"), &[]);
    says(&read("alternative = { dependency = \"replica\" }"), &[Code::NoEvidence]);
    says(&read("alternative = {}"), &[Code::MissingKey]);
    says(&read("alternative = { dependency = \"replicas\" }"), &[Code::UnknownReference]);
    says(&read("alternative = { dependency = \"catalog\" }"), &[Code::SameDependency]);
    let same_address = verified("evidence/replica.toml").replace("http://replica", "http://X:80/");
    says(&same_address, &[Code::SameDependency]);
    let at = |first: &str, other: &str| {
        verified("evidence/replica.toml").replace("http://x", first).replace("http://replica", other)
    };
    for (first, other) in [
        ("http://localhost:9001", "http://127.0.0.1:9001"),
        ("http://127.0.0.1:9001", "http://192.0.2.1:9001\", \"http://localhost:9001"),
        ("http://[::ffff:10.0.0.7]:9001", "http://10.0.0.7:9001"),
        ("http://[0:0::1]:9001", "http://[::1]:9001"),
        ("http://0.0.0.0:9001", "http://127.0.0.1:9001"),
        ("http://shop.localhost", "http://127.0.0.1:80"),
    ] {
        let list = |urls: &str| {
            at(first, urls).replace(&format!("url = \"{urls}\""), &format!("url = [\"{urls}\"]"))
        };
        says(&list(other), &[Code::SameDependency]);
    }
    says(&at("http://127.0.0.1:9001", "http://127.0.0.1:9002"), &[]);
    says(&at("http://127.0.0.1:9001", "http://127.0.0.2:9001"), &[]);
    says(&at("http://127.0.0.1:9001", "http://[::1]:9001"), &[]);
    says(
        &verified("evidence/replica.toml").replace("in_flight = 10", "in_flight = 21"),
        &[Code::AboveVerified],
    );
    says(&verified("evidence/replica.toml").replace("in_flight = 10", "in_flight = 20"), &[]);
    let more = verified("evidence/replica.toml").replace(REPLICA, &REPLICA.replace("20", "21"));
    says(&more, &[Code::AboveVerified]);

    let share = |its: &str| {
        "[resource.db]\nconcurrency = 99\n[resource.other]\nconcurrency = 99\n".to_owned()
            + &verified("evidence/replica.toml")
                .replace("url = \"http://x\"", "url = \"http://x\"\nuses = [\"db\", \"other\"]")
                .replace("url = \"http://replica\"", &format!("url = \"http://replica\"\nuses = {its}"))
    };
    says(&share("[\"other\"]"), &[Code::SharedResource]);
    says(&share("[\"db\", \"other\"]"), &[Code::SharedResource; 2]);
    says(
        &share("[\"own\"]").replace("[resource.other]", "[resource.own]\nrate = \"1/s\"\n[resource.other]"),
        &[],
    );
}
