//! The operator's edits are for the dependency's answers. What Backstop says itself keeps its own description.

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Origin};

use crate::support::shop::{HOST, SPANISH, down};
use crate::support::{Gateway, Policy, expect, product, run};

const EDITS: &str = "response_headers = { set = { pragma = \"x\", vary = \"x-a\", etag = \"\\\"e\\\"\", x-frame-options = \"DENY\" }, \
     remove = [\"x-gone\", \"content-language\"] }";
const LEFT_OUT: &str = "otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }";

const EDITED: [(&str, &str); 3] = [("pragma", "x"), ("vary", "x-a"), ("etag", "\"e\"")];

/// What is not about the answer is on every answer; what is, only on the dependency's.
#[track_caller]
fn edited(answer: &Response, is_own: bool) {
    assert_eq!(answer.head.fields.all("x-frame-options").collect::<Vec<_>>(), ["DENY"]);
    for (name, value) in EDITED {
        if is_own {
            assert_ne!(answer.header(name), Some(value), "{name}: {:?}", answer.head);
        } else {
            assert_eq!(answer.header(name), Some(value), "{name}: {:?}", answer.head);
        }
    }
}

#[test]
fn edits_leave_alone_what_an_own_answer_says_of_itself() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let read = Policy::description(&format!("{EDITS}\ncorrect ="));
        let direct = "match = \"*\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 4";
        let part = "match = \"GET /p/{id}/recommendations\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 2";
        let mut gateway = Gateway::start(
            &Policy::empty()
                .dependency("catalog", origin.addr(), "")
                .route("description.public_read", &read)
                .route("recommendations.optional", &format!("{part}\n{LEFT_OUT}\n{EDITS}"))
                .route("rest.direct", &format!("{direct}\n{EDITS}")),
        );
        HOST.clone_into(&mut gateway.host);
        origin.default(Behaviour::from_fn(|_| {
            Answer::json(product("1", "first", "es")).header("X-Gone", "1").header("Content-Language", "es")
        }));
        for path in ["/p/1", "/p/1/recommendations", "/else"] {
            let live = gateway.get(path, &SPANISH).await;
            edited(&live, false);
            assert_eq!(
                (live.status(), live.header("x-gone"), live.header("content-language")),
                (200, None, None)
            );
        }
        down(&origin).await;
        let copy = gateway.get("/p/1", &SPANISH).await;
        edited(&copy, false);
        expect::marked_as_copy(&copy, 0, "connect");
        let missing = gateway.get("/p/2", &SPANISH).await;
        edited(&missing, true);
        expect::no_copy(&missing, "missing", "connect");
        let failed = gateway.get("/else", &SPANISH).await;
        edited(&failed, true);
        expect::refused(&failed, 502, "outcome=failed, reason=connect");
        let left_out = gateway.get("/p/1/recommendations", &SPANISH).await;
        edited(&left_out, true);
        assert_eq!((left_out.status(), left_out.text().as_str()), (200, "[]"));
        assert_eq!(left_out.header("content-type"), Some("application/json"));
        assert_eq!(left_out.header("cache-control"), Some("no-store"));
    });
}
