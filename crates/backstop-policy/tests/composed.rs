//! Composed routes and prepared answers by language: what is accepted, what is refused and why, and what becomes of it.

mod support;

use backstop_engine::policy::{DependencyId, Otherwise, RouteClass, RouteId};
use backstop_policy::{Code, Segment, Severity};
use support::{diagnosed, loaded};

const ROUTES: &str = r#"
[route.product.public_read]
match      = ["GET /products/{product}", "GET /products/best"]
dependency = "catalog"
deadline   = "300ms"
in_flight  = 50
max_age    = "60s"
key        = []
correct    = { type = "application/json" }

[route.reviews.direct]
match      = "* /products/{id}/{rest*}"
dependency = "catalog"
deadline   = "300ms"
in_flight  = 50
"#;

fn page(lines: &str, parts: &str) -> String {
    format!(
        "[route.page.composed]\ndeadline = \"500ms\"\nin_flight = 50\n{}\n{lines}\nparts = [{parts}]\n{ROUTES}",
        if lines.contains("match") { "" } else { "match = \"GET /pages/{product}\"" }
    )
}

fn part(at: &str, route: &str, path: &str) -> String {
    format!("{{ at = {at:?}, route = {route:?}, path = {path:?}, required = true }}, ")
}

fn product(at: &str) -> String {
    part(at, "product", "/products/{product}")
}

/// The errors of a fragment, each with the bytes that it points at.
fn errors(fragment: &str) -> Vec<(Code, String)> {
    let (text, diagnostics) = diagnosed(fragment);
    let errors = diagnostics.into_iter().filter(|diagnostic| diagnostic.severity() == Severity::Error);
    errors.map(|error| (error.code, text[error.place.bytes].to_owned())).collect()
}

#[track_caller]
fn refused(fragment: &str, code: Code, place: &str) {
    assert_eq!(errors(fragment), [(code, place.to_owned())], "{fragment}");
}

#[track_caller]
fn accepted(fragment: &str) {
    assert_eq!(errors(fragment), [], "{fragment}");
}

#[test]
fn a_composed_route_becomes_parts_of_other_routes() {
    let reviews = r#"{ at = "/more/reviews", route = "reviews", path = "/products/{product}/reviews/new" }"#;
    let loaded = loaded(&page("function = \"browse\"", &(product("/product") + reviews)));
    let names: Vec<_> = loaded.routes.iter().map(|route| &*route.name).collect();
    assert_eq!(names, ["page", "product", "reviews"]);
    let route = &loaded.policy.routes[0];
    assert_eq!((route.dependency, route.in_flight), (DependencyId::NONE, 50));
    assert_eq!(route.function.as_deref(), Some("browse"));
    let RouteClass::Composed(composed) = &route.class else { panic!("{route:?}") };
    let told: Vec<_> = composed.parts.iter().map(|part| (&*part.at, part.route, part.required)).collect();
    assert_eq!(told, [("/product", RouteId(1), true), ("/more/reviews", RouteId(2), false)]);
    assert!(loaded.sources.locate(composed.parts[1].origin).is_some(), "a part has a place");
    let parts = &loaded.routes[0].parts;
    assert_eq!(parts[0].path.to_string(), "/products/{product}");
    let product = Segment::Parameter("product".into());
    assert_eq!(parts[0].parameters, [("product".into(), vec![product.clone()])]);
    let literal = |text: &str| Segment::Literal(text.into());
    // The route's own names: `{id}` is the page's product, the rest are two literals.
    let expected = [("id".into(), vec![product]), ("rest".into(), vec![literal("reviews"), literal("new")])];
    assert_eq!(parts[1].parameters, expected);
    assert!(loaded.routes[1].parts.is_empty());
}

/// The most specific rule of the route takes the path: `/products/best` is a literal and has no parameter.
#[test]
fn the_most_specific_rule_of_the_route_takes_the_path() {
    let loaded = loaded(&page("", &part("/best", "product", "/products/best")));
    assert!(loaded.routes[0].parts[0].parameters.is_empty());
}

#[test]
fn parts_stand_side_by_side() {
    for (one, other) in [("/a", "/a"), ("/a", "/a/b"), ("/a/b", "/a"), ("/a~1b", "/a~1b/c"), ("/", "/")] {
        let place = format!("{other:?}");
        refused(&page("", &(product(one) + &product(other))), Code::PartPlaces, &place);
    }
    refused(&page("", &product("")), Code::PartPlaces, "\"\"");
    for (one, other) in [("/a", "/ab"), ("/a/b", "/a/c"), ("/a~1b", "/a/b"), ("/", "/a")] {
        accepted(&page("", &(product(one) + &product(other))));
    }
    refused(&page("", &product("product")), Code::Pointer, "\"product\"");
    accepted(&page("", &product(&"/a".repeat(32))));
    let deep = "/a".repeat(33);
    refused(&page("", &product(&deep)), Code::Pointer, &format!("{deep:?}"));
}

#[test]
fn a_part_is_a_known_route_that_can_be_one() {
    refused(&page("", &part("/a", "prodct", "/products/{product}")), Code::UnknownReference, "\"prodct\"");
    refused(&page("", &part("/a", "page", "/pages/{product}")), Code::PartClass, "\"page\"");
    let streams = page("", &part("/a", "reviews", "/products/{product}/r"))
        .replace("[route.reviews.direct]", "[route.reviews.direct]\nidle = \"5s\"");
    refused(&streams, Code::PartClass, "\"reviews\"");
}

#[test]
fn a_parameter_is_a_segment_of_every_path_of_the_page() {
    let path = "/products/{prodct}";
    refused(&page("", &part("/a", "product", path)), Code::PartParameter, &format!("{path:?}"));
    let (_, diagnostics) = diagnosed(&page("", &part("/a", "product", path)));
    assert_eq!(diagnostics[0].fix.as_ref().unwrap().replacement, "\"/products/{product}\"");
    let two = "match = [\"GET /pages/{product}\", \"GET /home\"]";
    refused(&page(two, &product("/a")), Code::PartParameter, "\"/products/{product}\"");
    let rest = "match = \"GET /pages/{product*}\"";
    refused(&page(rest, &product("/a")), Code::PartParameter, "\"/products/{product}\"");
    accepted(&page("match = \"GET /home\"", &part("/a", "product", "/products/1")));
}

#[test]
fn a_part_is_answered_by_its_route_whatever_the_request() {
    let refused_path = |route: &str, path: &str| {
        refused(&page("", &part("/a", route, path)), Code::PartNotMatched, &format!("{path:?}"));
    };
    refused_path("product", "/product/{product}");
    refused_path("product", "/products/{product}/reviews");
    refused_path("product", "/products/");
    for path in
        ["/products/{product*}", "/products/{product}?x=1", "products/{product}", "/products/../x", "/%zz"]
    {
        refused(&page("", &part("/a", "product", path)), Code::Match, &{
            let (text, diagnostics) = diagnosed(&page("", &part("/a", "product", path)));
            text[diagnostics[0].place.bytes.clone()].to_owned()
        });
    }
    let writes =
        page("", &part("/a", "reviews", "/products/{product}/r")).replace("\"* /products", "\"PUT /products");
    refused(&writes, Code::PartNotMatched, "\"/products/{product}/r\"");
}

#[test]
fn a_part_is_answered_for_every_host_of_the_page() {
    let hosts = |page_hosts: &str, route_hosts: &str| {
        page(page_hosts, &product("/a"))
            .replace("[route.product.public_read]", &format!("[route.product.public_read]\n{route_hosts}"))
    };
    for (page, route) in [
        ("", ""),
        ("host = \"shop.example\"", ""),
        ("host = \"shop.example\"", "host = [\"other.example\", \"shop.example\"]"),
        ("host = \"shop.example\"", "host = \"*.example\""),
        ("host = \"*.shop.example\"", "host = \"*.example\""),
    ] {
        accepted(&hosts(page, route));
    }
    for (page, route) in [
        ("", "host = \"shop.example\""),
        ("host = [\"shop.example\", \"other.example\"]", "host = \"shop.example\""),
        ("host = \"*.example\"", "host = \"*.shop.example\""),
        ("host = \"*.example\"", "host = \"shop.example\""),
    ] {
        refused(&hosts(page, route), Code::PartNotMatched, "\"product\"");
    }
}

#[test]
fn from_one_part_to_sixteen() {
    refused(&page("", ""), Code::Empty, "[]");
    let many = |count: usize| (0..count).map(|number| product(&format!("/{number}"))).collect::<String>();
    accepted(&page("", &many(16)));
    let errors = errors(&page("", &many(17)));
    assert_eq!(errors.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [Code::TooManyParts]);
    assert!(errors[0].1.contains("/16"), "the seventeenth: {errors:?}");
}

/// It reads, and has no key of what asks a dependency itself.
#[test]
fn what_a_composed_route_has_not() {
    refused(
        &page("match = \"* /pages/{product}\"", &product("/a")),
        Code::WritesWithAlternative,
        "\"* /pages/{product}\"",
    );
    for key in [
        "dependency = \"catalog\"",
        "strip_prefix = \"/x\"",
        "max_age = \"1s\"",
        "retry = {}",
        "otherwise = {}",
    ] {
        let name = key.split(' ').next().unwrap();
        refused(&page(key, &product("/a")), Code::OtherClass, name);
    }
    for key in ["at", "route", "path"] {
        let without: String = product("/a").replace(&format!("{key} = "), &format!("{key}x = "));
        let codes: Vec<_> = errors(&page("", &without)).into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, [Code::MissingKey, Code::UnknownKey], "{without}");
    }
}

fn optional(lines: &str) -> String {
    format!(
        "[route.x.optional]\nmatch = \"GET /x\"\ndependency = \"catalog\"\ndeadline = \"80ms\"\nin_flight = 10\n{lines}\n"
    )
}

const ES: &str = "{ es = \"general.json\", default = \"general.json\" }";

#[test]
fn a_prepared_answer_may_have_languages() {
    let lines = format!("languages = [\"es\", \"en\"]\notherwise = {{ prepared = {ES} }}");
    let loaded = loaded(&optional(&lines));
    let RouteClass::Optional(optional) = &loaded.policy.routes[0].class else { panic!("not optional") };
    assert_eq!(optional.languages, ["es".into(), "en".into()]);
    let Otherwise::Prepared(general) = &optional.otherwise else { panic!("not prepared") };
    assert_eq!(&*general.body, br#"{"items":[]}"#);
    let [(language, answer)] = optional.by_language.as_slice() else { panic!("{optional:?}") };
    assert_eq!((&**language, answer), ("es", general));
}

#[test]
fn languages_of_prepared_answers_are_negotiated_and_their_files_are_right() {
    let with = |languages: &str, prepared: &str| {
        optional(&format!("{languages}\notherwise = {{ prepared = {prepared} }}"))
    };
    let both = "languages = [\"es\", \"en\"]";
    refused(&with("", ES), Code::PreparedLanguages, "es");
    refused(&with("languages = [\"en\"]", ES), Code::PreparedLanguages, "es");
    accepted(&with("languages = [\"ES\"]", ES));
    accepted(&with(both, "\"general.json\""));
    refused(&with(both, "{ es = \"general.json\" }"), Code::MissingKey, "{ es = \"general.json\" }");
    refused(&with(both, "{ e_s = \"general.json\", default = \"general.json\" }"), Code::Language, "e_s");
    refused(
        &with(both, "{ es = \"general.json\", ES = \"general.json\", default = \"general.json\" }"),
        Code::Repeated,
        "ES",
    );
    for file in ["missing.json", "broken.json", "large.json", "general.bin"] {
        let place = format!("{file:?}");
        refused(
            &with(both, &format!("{{ es = {file:?}, default = \"general.json\" }}")),
            Code::PreparedFile,
            &place,
        );
        refused(
            &with(both, &format!("{{ es = \"general.json\", default = {file:?} }}")),
            Code::PreparedFile,
            &place,
        );
        refused(&with("", &place), Code::PreparedFile, &place);
    }
    let two =
        errors(&with(both, "{ es = \"missing.json\", en = \"broken.json\", default = \"general.json\" }"));
    assert_eq!(two.len(), 2, "all in one pass: {two:?}");
    assert!(errors(&with(both, "[]")).contains(&(Code::WrongType, "[]".to_owned())));
    refused(&with("languages = [\"es\", \"ES\"]", "\"general.json\""), Code::Repeated, "\"ES\"");
    let edits = "languages = [\"es\"]\nrequest_headers = { remove = [\"accept-language\"] }";
    refused(&with(edits, "\"general.json\""), Code::ReservedHeader, "\"accept-language\"");
}
