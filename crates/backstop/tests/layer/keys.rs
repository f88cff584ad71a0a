//! A copy answers only the request that it is the answer to: same resource, language, tenant and variant.
//!
//! Caches that forgot a part of the key served one language to another (<https://github.com/darkweak/souin/issues/192>).

use backstop::engine::policy::KeyPart;
use http::Request;

use crate::support::{PRODUCT, REFUSED, Shop, answers, description, description_with, request, says};

const MISSING: &str = "503; outcome=rejected, reason=missing, cause=connect";
const COPY: &str = "200 v1; outcome=fallback, source=snapshot, age=0, reason=connect";

fn by_language_and_tenant() -> Shop {
    Shop::open(description_with(|read| {
        read.languages = vec!["es".into(), "en".into()];
        read.key = vec![KeyPart::Language, KeyPart::Header("x-tenant".into())];
    }))
}

const SPANISH: (&str, &str) = ("accept-language", "es");
const TENANT: (&str, &str) = ("x-tenant", "a");

#[test]
fn another_product_query_host_language_or_tenant_has_no_copy() {
    let shop = by_language_and_tenant();
    shop.warm(request("GET", PRODUCT, &[SPANISH, TENANT]), says("v1"));
    shop.catalog.does(REFUSED);
    for (same, fields) in
        [(PRODUCT, vec![SPANISH, TENANT]), (PRODUCT, vec![("accept-language", "es-MX, en;q=0.5"), TENANT])]
    {
        assert_eq!(shop.line(request("GET", same, &fields)), COPY, "{fields:?}");
    }
    for (other, fields) in [
        ("/products/43", vec![SPANISH, TENANT]),
        ("/products/42?x=1", vec![SPANISH, TENANT]),
        ("/products/42?", vec![SPANISH, TENANT]),
        ("http://other.example/products/42", vec![SPANISH, TENANT]),
        (PRODUCT, vec![("accept-language", "en"), TENANT]),
        (PRODUCT, vec![("accept-language", "de"), TENANT]),
        (PRODUCT, vec![TENANT]),
        (PRODUCT, vec![SPANISH, ("x-tenant", "b")]),
        (PRODUCT, vec![SPANISH, ("x-tenant", "")]),
        (PRODUCT, vec![SPANISH]),
        (PRODUCT, vec![SPANISH, TENANT, ("x-tenant", "b")]),
    ] {
        assert_eq!(shop.line(request("GET", other, &fields)), MISSING, "{other} {fields:?}");
    }
}

/// Whoever is asked may read the second line: what it answers is not the first tenant's.
#[test]
fn a_tenant_who_names_two_cannot_leave_a_copy_for_the_other() {
    let shop = by_language_and_tenant();
    shop.warm(request("GET", PRODUCT, &[SPANISH, TENANT, ("x-tenant", "b")]), says("of b"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(request("GET", PRODUCT, &[SPANISH, TENANT])), MISSING);
    assert_eq!(shop.line(request("GET", PRODUCT, &[SPANISH, ("x-tenant", "b")])), MISSING);
}

/// The negotiated language is what is asked for, and `Vary` compares it.
#[test]
fn the_catalog_is_asked_in_the_negotiated_language() {
    let shop = by_language_and_tenant();
    shop.warm(
        request("GET", PRODUCT, &[("accept-language", "es-MX;q=0.9, de;q=0.1")]),
        vary("accept-language"),
    );
    assert_eq!(shop.catalog.last_asked_with("accept-language").as_deref(), Some("es"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(request("GET", PRODUCT, &[SPANISH])), COPY);
}

#[test]
fn a_language_that_the_route_has_not_is_forwarded_as_it_is_and_never_kept() {
    let german = || request("GET", PRODUCT, &[("accept-language", "de")]);
    let shop = by_language_and_tenant();
    shop.warm(german(), says("v1"));
    assert_eq!(shop.catalog.last_asked_with("accept-language").as_deref(), Some("de"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(german()), MISSING);
}

fn vary(names: &str) -> crate::support::Does {
    answers(200, &[("vary", names)], "v1")
}

fn asked_after(names: &str, first: &[(&str, &str)], then: &[(&str, &str)]) -> String {
    let shop = Shop::open(description().policy());
    let request = |fields: &[(&str, &str)]| -> Request<()> { request("GET", PRODUCT, fields) };
    shop.warm(request(first), vary(names));
    shop.catalog.does(REFUSED);
    shop.line(request(then))
}

/// RFC 9111 section 4.1: every nominated field matches, absent only absent, and `*` nothing.
#[test]
fn every_field_that_the_answer_varies_by_must_match() {
    let (es, de) = (("accept-language", "es"), ("accept-language", "de"));
    assert_eq!(asked_after("Accept-Language", &[es], &[es]), COPY);
    assert_eq!(asked_after("Accept-Language", &[es], &[de]), MISSING);
    assert_eq!(asked_after("Accept-Language", &[es], &[]), MISSING);
    assert_eq!(asked_after("Accept-Language", &[], &[es]), MISSING);
    assert_eq!(asked_after("Accept-Language", &[], &[]), COPY);
    assert_eq!(
        asked_after("Accept-Language", &[], &[("accept-language", "")]),
        MISSING,
        "empty is not absent"
    );
    assert_eq!(
        asked_after("Accept-Language", &[("accept-language", "es,de")], &[("accept-language", "es, de")]),
        COPY
    );
    assert_eq!(asked_after("X-A, Accept-Language", &[("x-a", "1"), es], &[("x-a", "2"), es]), MISSING);
    assert_eq!(
        asked_after("X-A", &[("x-a", "1"), es], &[("x-a", "1"), de]),
        COPY,
        "what it does not vary by"
    );
    for star in ["*", "X-A, *", ", *", "* , X-A"] {
        assert_eq!(asked_after(star, &[], &[]), MISSING, "{star:?}");
    }
}

/// `Accept-Encoding` is replaced before the catalog sees it, so it distinguishes nothing.
#[test]
fn clients_of_different_codings_share_one_copy() {
    assert_eq!(
        asked_after("Accept-Encoding", &[("accept-encoding", "gzip")], &[("accept-encoding", "br")]),
        COPY
    );
}

/// Whoever names languages has one copy for each, whether or not the key names them as well.
#[test]
fn languages_without_a_key_part_share_no_copy() {
    let shop = Shop::open(description().languages(&["es", "en"]).policy());
    shop.warm(request("GET", PRODUCT, &[SPANISH]), says("v1"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(request("GET", PRODUCT, &[("accept-language", "en")])), MISSING);
    assert_eq!(shop.line(request("GET", PRODUCT, &[SPANISH])), COPY);
}
