//! A read that began earlier and ends later never brings old data back. A public report: a read begun before a change was
//! stored after the change had cleared the cache, <https://github.com/strapi-community/plugin-rest-cache/issues/132>.

use backstop_lab::client::Response;
use backstop_lab::origin::{Behaviour, Gate, Matcher};
use tokio::task::JoinHandle;

use crate::support::shop::SPANISH;
use crate::support::{BOUND, Policy, Shop, expect, product, products, run};

struct Slow {
    shop: Shop,
    gate: Gate,
    reading: JoinHandle<Response>,
}

/// A read of version 1 that the origin works on until the gate opens.
async fn slow_read_of_version_1() -> Slow {
    let shop = Shop::with(|origin| {
        Policy::shop(origin)
            .replace_route("description.public_read", &Policy::description("deadline = \"2s\""))
    })
    .await;
    let gate = Gate::new();
    shop.origin.on(Matcher::any(), products("version 1").gate(&gate));
    let address = shop.gateway.addr;
    let reading =
        tokio::spawn(async move { backstop_lab::client::get(address, "/p/1", &SPANISH).await.unwrap() });
    gate.wait_for_waiting(1, BOUND).await.unwrap();
    shop.origin.on(Matcher::any(), products("version 2"));
    Slow { shop, gate, reading }
}

impl Slow {
    /// The slow read ends: its own client gets what it asked for.
    async fn ends(self) -> Shop {
        self.gate.open();
        expect::live(&self.reading.await.unwrap(), 200, &product("1", "version 1", "es"));
        self.shop.is_unavailable();
        self.shop
    }
}

#[test]
fn a_read_that_began_earlier_does_not_overwrite_a_later_one() {
    run(async {
        let mut slow = slow_read_of_version_1().await;
        slow.shop.pass(0.4);
        expect::live(&slow.shop.get("1").await, 200, &product("1", "version 2", "es"));
        slow.shop.pass(1.1);
        let shop = slow.ends().await;
        expect::copy(&shop.get("1").await, &product("1", "version 2", "es"), 1, "unavailable");
    });
}

/// A write lies between: the read after it is a read of its own, and its answer is the copy.
#[test]
fn a_read_that_began_before_a_put_does_not_overwrite_the_one_after() {
    run(async {
        let mut slow = slow_read_of_version_1().await;
        slow.shop.pass(0.4);
        slow.shop.origin.on(Matcher::any().method("PUT"), Behaviour::status(204));
        let put = slow.shop.gateway.request("PUT", "/p/1", &SPANISH, b"{}").await;
        assert_eq!(put.status(), 204);
        slow.shop.pass(0.2);
        let after = slow.shop.get("1").await;
        expect::live(&after, 200, &product("1", "version 2", "es"));
        assert_eq!(slow.shop.origin.count_of("GET", "/p/1"), 2, "it was not attached to the earlier read");
        let shop = slow.ends().await;
        expect::copy(&shop.get("1").await, &product("1", "version 2", "es"), 0, "unavailable");
    });
}

/// Nothing was read since: there is no copy, rather than one of what was deleted.
#[test]
fn a_read_that_began_before_a_delete_leaves_no_copy() {
    run(async {
        let mut slow = slow_read_of_version_1().await;
        slow.shop.pass(0.4);
        slow.shop.origin.on(Matcher::any().method("DELETE"), Behaviour::status(204));
        assert_eq!(slow.shop.gateway.request("DELETE", "/p/1", &SPANISH, b"").await.status(), 204);
        let shop = slow.ends().await;
        expect::no_copy(&shop.get("1").await, "missing", "unavailable");
    });
}

/// The same by the origin's own word: while the read is under way, another one learns that the product is gone.
#[test]
fn a_read_that_began_before_a_404_leaves_no_copy() {
    run(async {
        let mut slow = slow_read_of_version_1().await;
        slow.shop.pass(0.4);
        slow.shop.origin.script(Matcher::any(), [Behaviour::status(404)]);
        assert_eq!(slow.shop.get("1").await.status(), 404);
        let shop = slow.ends().await;
        expect::no_copy(&shop.get("1").await, "missing", "unavailable");
    });
}
