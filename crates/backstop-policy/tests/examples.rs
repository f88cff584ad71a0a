//! The policies in `examples/` are accepted, and mean what they seem to.

#![expect(clippy::panic, reason = "helpers of tests stop the test")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use backstop_engine::policy::{DependencyId, KeyPart, Otherwise, RouteClass, RouteId};
use backstop_policy::{Code, Loaded, Method, NoFiles, Segment, load, parse, render_human};

fn example(name: &str) -> Loaded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    load(&path).unwrap_or_else(|refused| panic!("{refused}"))
}

#[test]
fn every_example_is_accepted_with_nothing_but_the_notes_on_drills_and_observing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let policies: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        // A drill is no policy.
        .filter(|path| !path.ends_with("drill.toml"))
        .collect();
    assert!(policies.len() >= 2);
    for path in policies {
        let loaded = load(&path).unwrap_or_else(|refused| panic!("{refused}"));
        // Neither is any fault of a policy that is to be begun with.
        let is_expected = |code: Code| matches!(code, Code::Unmeasured | Code::Observed);
        let others: Vec<_> = loaded.warnings.iter().filter(|w| !is_expected(w.code)).cloned().collect();
        assert!(others.is_empty(), "{}", render_human(&others, loaded.sources.text(), false));
        assert_eq!(loaded.policy.validate(), Ok(()));
    }
}

#[test]
fn the_shop_is_lowered_in_the_order_of_the_file() {
    let shop = example("shop.toml");
    let names: Vec<_> = shop.policy.routes.iter().map(|route| &*route.name).collect();
    assert_eq!(names, ["description", "recommendations", "describe", "rest"]);
    assert!(shop.routes.iter().zip(&shop.policy.routes).all(|(a, b)| a.name == b.name));
    assert!(shop.dependencies.iter().zip(&shop.policy.dependencies).all(|(a, b)| a.name == b.name));
    assert_eq!(shop.dependencies[0].addresses[0].to_string(), "127.0.0.1:9001");
    assert_eq!(shop.dependencies[1].connect, Duration::from_millis(20));
    assert_eq!(shop.policy.routes[1].dependency, DependencyId(1));
    assert_eq!(shop.routes[2].withdraws, [RouteId(0)]);

    let RouteClass::PublicRead(read) = &shop.policy.routes[0].class else { panic!("not a public read") };
    assert_eq!(read.max_age, Duration::from_secs(6));
    let key = [KeyPart::Path("product".into()), KeyPart::Language, KeyPart::Header("x-tenant".into())];
    assert_eq!(read.key, key);
    assert_eq!(read.correct.echo, [("/lang".into(), KeyPart::Language)]);
    assert!(read.gone.contains(410) && !read.gone.contains(403));

    let RouteClass::Optional(optional) = &shop.policy.routes[1].class else { panic!("not optional") };
    let Otherwise::Prepared(answer) = &optional.otherwise else { panic!("not prepared") };
    assert_eq!((answer.status, &*answer.media_type), (200, "application/json"));
}

#[test]
fn a_star_is_every_method_and_path() {
    let text = "[gateway]\nlisten = \"127.0.0.1:1\"\nin_flight = 9\n[dependency.app]\nurl = \"http://127.0.0.1:2\"\n[route.all.direct]\nmatch = \"*\"\ndependency = \"app\"\ndeadline = \"1s\"\nin_flight = 9\n";
    let all = parse(text, "policy.toml", &NoFiles).unwrap();
    let rule = &all.routes[0].matches[0];
    assert_eq!(rule.method, Method::Any);
    assert_eq!(rule.template.segments, [Segment::Rest("rest".into())]);
}

#[test]
fn origins_lead_back_to_the_line() {
    let shop = example("shop.toml");
    let origins = shop.policy.routes[0].origins;
    let deadline = shop.sources.get(origins.deadline).unwrap();
    assert_eq!(deadline.path, "route.description.public_read.deadline");
    assert_eq!(deadline.text, r#"deadline   = "300ms""#);
    let route = shop.sources.get(origins.route).unwrap();
    assert_eq!(route.text, "[route.description.public_read]");
    let line =
        shop.sources.text().lines().position(|line| line.starts_with("deadline   = \"300ms\"")).unwrap();
    assert!(shop.sources.locate(origins.deadline).unwrap().ends_with(&format!("shop.toml:{}:1", line + 1)));
    assert_eq!(shop.sources.locate(origins.declared), None);
    assert_eq!(shop.sources.get(shop.policy.in_flight_origin).unwrap().text, "in_flight = 2000");
}
