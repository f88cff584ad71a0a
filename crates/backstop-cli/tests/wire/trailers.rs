//! Trailers (RFC 9110 section 6.5): passed on as trailers or not at all, never as fields of the head.

use backstop_lab::origin::{Answer, Matcher};

use crate::raw::Wires;
use crate::support::run;

fn request(fields: &str, trailer: &str) -> String {
    format!(
        "POST /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n{fields}\r\n\
         3\r\nabc\r\n0\r\n{trailer}\r\n"
    )
}

#[test]
fn announced_trailers_of_a_request_reach_the_origin_as_trailers() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say(request("Trailer: X-Sum\r\n", "X-Sum: 42\r\n")).await;
        assert_eq!(said.statuses(), [200]);
        let [request] = &wires.origin.requests()[..] else { panic!("one request") };
        assert_eq!((request.trailers.get("x-sum"), request.header("x-sum")), (Some("42"), None));
        assert_eq!((request.text().as_str(), request.complete), ("abc", true));
    });
}

/// RFC 9110 section 6.5.1: what frames, routes or authenticates a message means nothing behind it.
#[test]
fn no_trailer_becomes_a_field() {
    run(async {
        let wires = Wires::open().await;
        for trailer in [
            "X-Sum: 42",
            "Host: other",
            "Content-Length: 9",
            "Authorization: Basic x",
            "Transfer-Encoding: chunked",
        ] {
            wires.origin.forget();
            let name = trailer.split(':').next().unwrap_or_default();
            let said = wires.say(request("", &format!("{trailer}\r\n"))).await;
            said.closed(trailer);
            for request in wires.origin.requests() {
                let expected: &[&str] = match name {
                    "Host" => &["shop"],
                    "Transfer-Encoding" => &["chunked"],
                    _ => &[],
                };
                assert_eq!(request.fields.all(name).collect::<Vec<_>>(), expected, "{trailer}");
                assert!(!request.ambiguous, "{trailer}");
                if name != "X-Sum" {
                    assert_eq!(request.trailers.count(name), 0, "{trailer}");
                }
            }
        }
    });
}

#[test]
fn trailers_of_an_answer_reach_a_client_that_takes_them() {
    run(async {
        let wires = Wires::open().await;
        let answer = Answer::json("{}").chunked(2).header("Trailer", "X-Sum").trailer("X-Sum", "42");
        wires.origin.on(Matcher::any(), answer);
        let takes = wires.gateway.get("/p/1", &[("TE", "trailers"), ("Connection", "TE, close")]).await;
        assert_eq!((takes.trailers.get("x-sum"), takes.header("x-sum")), (Some("42"), None));
        assert!(takes.is_complete());
        let does_not = wires.gateway.get("/p/1", &[]).await;
        assert_eq!((does_not.trailers.len(), does_not.header("x-sum")), (0, None));
        assert_eq!((does_not.text().as_str(), does_not.is_complete()), ("{}", true));
    });
}
