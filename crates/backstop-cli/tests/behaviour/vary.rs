//! What an answer varies on is part of its copy's identity (RFC 9111 section 4.1). A public report: a cache ignored `Vary`
//! and every caller got the first caller's variant, <https://github.com/darkweak/souin/issues/192>.

use backstop_lab::origin::{Behaviour, Matcher, Request};

use crate::support::shop::right_answer;
use crate::support::{Policy, Shop, expect, product, run};

fn varying(vary: &'static str) -> Behaviour {
    Behaviour::from_fn(move |request: &Request| right_answer(request, "first").header("Vary", vary))
}

/// A route that neither negotiates nor keys by language, in front of an origin that varies on it.
async fn shop_without_languages() -> Shop {
    let shop = Shop::with(|origin| {
        let read =
            "languages =\nkey = [\"path.id\"]\ncorrect = { type = \"application/json\", has = [\"/id\"] }";
        Policy::shop(origin).replace_route("description.public_read", &Policy::description(read))
    })
    .await;
    shop.origin.on(Matcher::any(), varying("Accept-Language"));
    shop
}

async fn in_language(shop: &Shop, language: Option<&str>) -> backstop_lab::client::Response {
    let fields: Vec<_> = language.map(|language| ("Accept-Language", language)).into_iter().collect();
    shop.gateway.get("/p/1", &fields).await
}

/// The route knows its languages: German and "no language" are never given the Spanish text.
#[test]
fn one_language_is_never_served_to_another() {
    run(async {
        let shop = Shop::open().await;
        shop.origin.on(Matcher::any(), varying("Accept-Language"));
        expect::live(&in_language(&shop, Some("es")).await, 200, &product("1", "first", "es"));
        shop.goes_down().await;
        for other in [Some("de"), Some("fr"), Some("*;q=0"), None] {
            expect::no_copy(&in_language(&shop, other).await, "missing", "connect");
        }
        expect::copy(&in_language(&shop, Some("es")).await, &product("1", "first", "es"), 0, "connect");
    });
}

/// The policy forgot the language; `Vary` alone keeps the variants apart. Every field must match, and an absent one matches
/// only an absent one.
#[test]
fn vary_keeps_languages_apart_where_the_policy_does_not() {
    run(async {
        let shop = shop_without_languages().await;
        expect::live(&in_language(&shop, Some("es")).await, 200, &product("1", "first", "es"));
        shop.is_unavailable();
        for other in [Some("de"), Some("es-MX"), Some("es, en;q=0.5"), Some(""), None] {
            expect::no_copy(&in_language(&shop, other).await, "missing", "unavailable");
        }
        expect::copy(&in_language(&shop, Some("es")).await, &product("1", "first", "es"), 0, "unavailable");
    });
}

/// Each variant is a copy of its own; a new one does not push the others out.
#[test]
fn variants_live_side_by_side() {
    run(async {
        let shop = shop_without_languages().await;
        let languages = [Some("es"), Some("de"), None];
        for language in languages {
            assert_eq!(in_language(&shop, language).await.status(), 200);
        }
        shop.is_unavailable();
        for language in languages {
            let expected = product("1", "first", language.unwrap_or("none"));
            expect::copy(&in_language(&shop, language).await, &expected, 0, "unavailable");
        }
    });
}

/// `Vary: *` matches no request at all.
#[test]
fn an_answer_that_varies_on_everything_is_never_a_copy() {
    run(async {
        for vary in ["*", "Accept-Language, *"] {
            let shop = Shop::open().await;
            shop.origin.on(Matcher::any(), varying(vary));
            expect::live(&in_language(&shop, Some("es")).await, 200, &product("1", "first", "es"));
            shop.is_unavailable();
            expect::no_copy(&in_language(&shop, Some("es")).await, "missing", "unavailable");
        }
    });
}
