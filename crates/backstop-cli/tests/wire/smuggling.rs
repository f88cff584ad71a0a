//! The classic pairs: one request to the one end, two to the other. The origin never sees the second.

use crate::raw::Wires;
use crate::support::run;

const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: shop\r\n\r\n";

/// The hidden request stands where the shorter of both readings ends.
fn pair(te: &str) -> [String; 2] {
    let chunked_is_empty = format!("0\r\n\r\n{HIDDEN}");
    let first = format!(
        "POST /seen HTTP/1.1\r\nHost: shop\r\nContent-Length: {}\r\n{te}\r\n\r\n{chunked_is_empty}",
        chunked_is_empty.len()
    );
    let chunk = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    let second = format!("POST /seen HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\n{te}\r\n\r\n{chunk}");
    [first, second]
}

/// However the coding is disguised: what comes to the origin is the one safe reading, in a framing of the gateway's own.
#[test]
fn two_framings_never_become_two_requests() {
    let disguises = [
        "Transfer-Encoding: chunked",
        "transfer-encoding: ChUnKeD",
        "Transfer-Encoding:\tchunked",
        "Transfer-Encoding:chunked ",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding: chunked\u{b}",
        "Transfer-Encoding: chunked\0",
        "Transfer-Encoding:\r\n chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
        "Connection: Content-Length\r\nTransfer-Encoding: chunked",
    ];
    run(async {
        let wires = Wires::open().await;
        for disguise in disguises {
            for bytes in pair(disguise) {
                let said = wires
                    .say(format!("{bytes}{}", "GET /end HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"))
                    .await;
                let requests = wires.origin.requests();
                let hidden = requests.iter().filter(|request| request.target == "/hidden").count();
                let posts = requests.iter().filter(|request| request.method == "POST").count();
                assert!(requests.iter().all(|request| !request.ambiguous), "{disguise}: {requests:?}");
                // What follows a request with two framings is never read. Where the disguise makes the field another
                // one or none, the length is the only framing and the hidden bytes are content.
                assert_eq!(hidden, 0, "{disguise}: {requests:?}");
                assert!(posts <= 1 && said.answers.len() <= requests.len().max(1), "{disguise}: {said:?}");
                wires.origin.forget();
            }
        }
    });
}

/// A second request behind a refused one is never read.
#[test]
fn nothing_is_read_behind_a_refusal() {
    run(async {
        let wires = Wires::open().await;
        for first in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: shop\r\nHost: shop\r\n\r\n",
            "GET /a/../b HTTP/1.1\r\nHost: shop\r\n\r\n",
            "TRACE / HTTP/1.1\r\nHost: shop\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: shop\r\nExpect: tea\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: shop\r\nConnection: authorization\r\n\r\n",
        ] {
            let said = wires.say(format!("{first}{HIDDEN}")).await;
            said.closed(first);
            assert_eq!(said.answers.len(), 1, "{first}: {said:?}");
        }
        assert_eq!(wires.origin.stats().connections_accepted, 0);
    });
}
