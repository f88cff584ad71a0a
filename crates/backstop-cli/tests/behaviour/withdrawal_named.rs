//! `withdraws` names routes whose copies a write on another path may have changed.

use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{Policy, Shop, expect, product, run};

/// Besides the shop: `PUT /stock/{id}` and `POST /import`, which withdraw the descriptions.
async fn shop() -> Shop {
    let shop = Shop::with(|origin| {
        let write = |matches: &str| {
            format!(
                "match = \"{matches}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\nwithdraws = [\"description\"]"
            )
        };
        Policy::shop(origin)
            .route("stock.direct", &write("PUT /stock/{id}"))
            .route("import.direct", &write("POST /import"))
            .route("rename.direct", &write("POST /rename/{name}"))
    })
    .await;
    for id in ["1", "2"] {
        shop.get(id).await;
    }
    shop.gateway.get("/p/1?size=2", &SPANISH).await;
    shop
}

async fn statuses(shop: &Shop) -> [u16; 3] {
    shop.is_unavailable();
    let query = shop.gateway.get("/p/1?size=2", &SPANISH).await.status();
    [shop.get("1").await.status(), query, shop.get("2").await.status()]
}

/// All parameters of the named route's path stand in the write's own: the write points at one product.
#[test]
fn a_write_with_the_same_parameters_withdraws_where_it_points() {
    run(async {
        let shop = shop().await;
        shop.origin.on(Matcher::any().method("PUT"), Answer::new(204));
        assert_eq!(shop.gateway.request("PUT", "/stock/1", &[], b"{}").await.status(), 204);
        assert_eq!(statuses(&shop).await, [503, 503, 200]);
    });
}

/// Nothing tells which product was changed: every copy of the route goes.
#[test]
fn a_write_without_them_withdraws_the_whole_route() {
    run(async {
        for target in ["/import", "/rename/x"] {
            let shop = shop().await;
            shop.origin.on(Matcher::any().method("POST"), Answer::new(200));
            assert_eq!(shop.gateway.request("POST", target, &[], b"{}").await.status(), 200);
            assert_eq!(statuses(&shop).await, [503; 3], "{target}");
        }
    });
}

/// Unknown counts as done; refused by the origin counts as not done.
#[test]
fn an_unknown_end_withdraws_and_a_refusal_does_not() {
    run(async {
        for (answer, expected) in [
            (Behaviour::reset(), [503, 503, 200]),
            (Behaviour::status(502), [503, 503, 200]),
            (Behaviour::status(422), [200; 3]),
        ] {
            let shop = shop().await;
            shop.origin.on(Matcher::any().method("PUT"), answer);
            shop.gateway.request("PUT", "/stock/1", &[], b"{}").await;
            assert_eq!(statuses(&shop).await, expected);
        }
    });
}

/// After the withdrawal the next correct read is kept as ever.
#[test]
fn a_read_after_the_write_is_kept() {
    run(async {
        let mut shop = shop().await;
        shop.origin.on(Matcher::any().method("POST"), Answer::new(200));
        shop.gateway.request("POST", "/import", &[], b"{}").await;
        shop.origin.default(crate::support::products("second"));
        shop.get("1").await;
        shop.is_unavailable();
        shop.pass(1.0);
        expect::copy(&shop.get("1").await, &product("1", "second", "es"), 1, "unavailable");
        expect::no_copy(&shop.get("2").await, "missing", "unavailable");
    });
}
