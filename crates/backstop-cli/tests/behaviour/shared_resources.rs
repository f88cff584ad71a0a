//! What several dependencies share is never used beyond its limit, whoever uses it.

use backstop_lab::origin::{Answer, Gate, Matcher, Origin};

use crate::support::{BOUND, Gateway, Policy, expect, run};

const ROUTES: [(&str, &str, &str); 2] = [("orders", "/orders", "orders-db"), ("stock", "/stock", "stock-db")];

/// Two dependencies use one database with two places. Direct reads may take all but what is kept for effects (below 85 %,
/// so 1 of 2); the second is refused at once, and no origin hears of it.
#[test]
fn a_resource_is_shared_by_all_who_use_it() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let mut policy = Policy::empty().table("resource.db", "concurrency = 2");
        for (name, path, dependency) in ROUTES {
            let route = format!(
                "match = \"GET {path}\"\ndependency = \"{dependency}\"\ndeadline = \"2s\"\nin_flight = 10"
            );
            policy = policy
                .dependency(dependency, origin.addr(), "uses = [\"db\"]")
                .route(&format!("{name}.direct"), &route);
        }
        let gateway = Gateway::start(&policy);
        let gate = Gate::new();
        origin.on(Matcher::path("/orders"), Answer::json("{}").gate(&gate));
        let held = gateway.get("/orders", &[]);
        let refused = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            let refused = gateway.get("/stock", &[]).await;
            expect::refused(&refused, 503, "outcome=rejected, reason=resource_full");
            assert_eq!(origin.count(), 1);
            gate.open();
        };
        let (held, ()) = tokio::join!(held, refused);
        assert_eq!(held.status(), 200);
        expect::idle(&gateway).await;
        assert_eq!(gateway.get("/stock", &[]).await.status(), 200);
    });
}
