//! Services that speak HTTP/1.0. Their version went on to the client, and with it an end that was no end: what was cut looked
//! whole.

use backstop_lab::client::Completeness;
use backstop_lab::origin::{Behaviour, Matcher, Then};

use crate::raw::{Wires, direct};
use crate::support::{Policy, run};

const OLD: &str = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhalf";

/// RFC 9112 section 2.3: whoever forwards a message sends its own version.
#[test]
fn an_answer_goes_on_in_our_own_version() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.on(Matcher::any(), Behaviour::raw(OLD, Then::Close));
        let said = wires.say("GET /p HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").await;
        let [whole] = &said.answers[..] else { panic!("{said:?}") };
        assert_eq!((whole.head.minor_version, whole.text().as_str()), (1, "half"));
        assert_eq!(whole.header("transfer-encoding"), Some("chunked"));
        assert!(whole.is_complete());
        let with_length = "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nhalf";
        wires.origin.on(Matcher::any(), Behaviour::raw(with_length, Then::Close));
        let answer = wires.gateway.get("/p", &[]).await;
        assert_eq!((answer.head.minor_version, answer.text().as_str()), (1, "half"));
    });
}

/// Broken off by the service, by the deadline of a whole answer, and by the longest pause of a stream.
#[test]
fn what_is_cut_of_an_old_services_answer_looks_cut() {
    run(async {
        for (then, more) in [
            (Then::Reset, "deadline = \"5s\""),
            (Then::Hang, "deadline = \"300ms\""),
            (Then::Hang, "idle = \"300ms\""),
        ] {
            let wires = Wires::with(|origin| {
                Policy::empty().dependency("catalog", origin, "").route("all.direct", &direct("*", more))
            })
            .await;
            wires.origin.on(Matcher::any(), Behaviour::raw(OLD, then));
            let answer = wires.gateway.get("/p", &[]).await;
            let is_cut = matches!(answer.completeness, Completeness::CutByFin | Completeness::CutByReset);
            assert!(answer.status() == 200 && is_cut, "{then:?} {more}: {answer:?}");
        }
    });
}
