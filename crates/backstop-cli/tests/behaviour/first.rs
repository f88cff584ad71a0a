//! The main path.

use std::time::Duration;

use backstop_lab::origin::{Behaviour, Matcher, Origin};

use crate::support::{Gateway, Policy, run};

/// The limit is inclusive: exactly 60 s is served, one nanosecond more is refused.
#[test]
fn a_copy_is_served_for_exactly_its_age() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.on(Matcher::any(), Behaviour::json(r#"{"id":"1","text":"saved","lang":"es"}"#));
        let gateway = Gateway::start(&Policy::shop(origin.addr()));
        let mut hand = gateway.hand();
        hand.freeze();
        let spanish = [("Accept-Language", "es"), ("X-Tenant", "a")];
        let live = gateway.get("/p/1", &spanish).await;
        assert_eq!((live.status(), live.mark().unwrap()), (200, None));
        origin.refuse().await.unwrap();
        hand.advance(Duration::from_secs(60));
        let saved = gateway.get("/p/1", &spanish).await;
        assert_eq!(saved.status(), 200);
        assert_eq!(saved.text(), live.text());
        assert_eq!(saved.header("age"), Some("60"));
        hand.advance(Duration::from_nanos(1));
        let refused = gateway.get("/p/1", &spanish).await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.header("backstop"), Some("outcome=rejected, reason=age, cause=connect"));
    });
}
