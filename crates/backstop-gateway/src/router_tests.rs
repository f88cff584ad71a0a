use super::*;
use backstop_policy::{NoFiles, parse};

/// Routes are named after their rule; `host` as in the file, or nothing.
fn router(rules: &[(&str, &str, &str)]) -> (Router, Vec<String>) {
    let mut text = String::from(
        "[gateway]\nname = \"t\"\nlisten = \"127.0.0.1:8080\"\nin_flight = 100\n[dependency.d]\nurl = \"http://127.0.0.1:1\"\n",
    );
    for (name, host, rule) in rules {
        let host = if host.is_empty() { String::new() } else { format!("host = \"{host}\"\n") };
        text.push_str(&format!(
            "[route.{name}.direct]\n{host}match = \"{rule}\"\ndependency = \"d\"\ndeadline = \"1s\"\nin_flight = 1\n"
        ));
    }
    let loaded = parse(&text, "t.toml", &NoFiles).map_err(|errors| format!("{errors:#?}")).unwrap();
    let names = loaded.routes.iter().map(|route| route.name.to_string()).collect();
    (Router::new(&loaded.routes).unwrap(), names)
}

/// A browser may ask what it may ask, unless somebody else answers that already.
#[test]
fn options_leaves_what_another_route_answers() {
    let route = |name, rule, lines| {
        format!(
            "[route.{name}.direct]\nmatch = \"{rule}\"\ndependency = \"d\"\ndeadline = \"1s\"\nin_flight = 1\n{lines}\n"
        )
    };
    let cors = "cors = { origins = \"*\" }";
    let text = [
        "[gateway]\nname = \"t\"\nlisten = \"127.0.0.1:8080\"\nin_flight = 100\n[dependency.d]\nurl = \"http://127.0.0.1:1\"\n".to_owned(),
        route("read", "GET /both", cors),
        route("rest", "* /both", ""),
        route("own", "GET /own", cors),
        route("asked", "OPTIONS /asked", ""),
        route("shown", "GET /asked", cors),
        route("plain", "GET /plain", ""),
    ];
    let loaded = parse(&text.concat(), "t.toml", &NoFiles).map_err(|errors| format!("{errors:#?}")).unwrap();
    let router = Router::new(&loaded.routes).unwrap();
    let who = |path| {
        let found = router.find("h", &http::Method::OPTIONS, path)?;
        loaded.routes.iter().find(|route| route.id == found.route).map(|route| &*route.name)
    };
    assert_eq!(who("/both"), Some("rest"));
    assert_eq!(who("/own"), Some("own"));
    assert_eq!(who("/asked"), Some("asked"));
    assert_eq!(who("/plain"), None);
}

#[test]
fn the_most_specific_rule_wins_whatever_its_place() {
    let (router, names) = router(&[
        ("rest", "", "*"),
        ("product", "", "GET /products/{product}"),
        ("special", "", "GET /products/special"),
        ("reviews", "", "GET /products/{id}/reviews"),
        ("any-product", "", "* /products/{x}"),
        ("shop", "shop.example", "GET /products/{product}"),
        ("wild", "*.example", "GET /wild"),
        ("files", "", "GET /files/{path*}"),
        ("root", "", "GET /"),
    ]);
    let find = |host: &str, method: &str, path: &str| {
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        router.find(host, &method, path).map(|found| names[usize::from(found.route.0)].clone())
    };
    let table = [
        ("x", "GET", "/products/42", "product"),
        ("x", "HEAD", "/products/42", "product"),
        ("x", "PUT", "/products/42", "any-product"),
        ("x", "GET", "/products/special", "special"),
        ("x", "POST", "/products/special", "any-product"),
        ("x", "GET", "/products/42/reviews", "reviews"),
        ("x", "DELETE", "/products/42/reviews", "rest"),
        ("x", "GET", "/products/", "rest"),
        ("x", "GET", "/products//reviews", "rest"),
        ("x", "GET", "/products/42/", "rest"),
        ("x", "GET", "/", "root"),
        ("x", "PUT", "/", "rest"),
        ("shop.example", "GET", "/products/42", "shop"),
        ("shop.example", "PUT", "/products/42", "any-product"),
        ("a.example", "GET", "/wild", "wild"),
        ("a.example", "GET", "/products/1", "product"),
        ("example", "GET", "/wild", "rest"),
        ("x", "GET", "/files/a/b", "files"),
        ("x", "GET", "/files/", "files"),
        ("x", "BREW", "/anything/else", "rest"),
    ];
    for (host, method, path, expected) in table {
        assert_eq!(find(host, method, path).as_deref(), Some(expected), "{method} {host}{path}");
    }
}

#[test]
fn parameters_have_the_names_of_their_own_rule() {
    let (router, _) = router(&[
        ("product", "", "GET /products/{product}"),
        ("reviews", "", "GET /products/{id}/reviews/{review}"),
    ]);
    let found = router.find("x", &http::Method::GET, "/products/a%2Fb/reviews/7").unwrap();
    assert_eq!(found.parameters.get("id"), Some("a%2Fb"));
    assert_eq!(found.parameters.get("review"), Some("7"));
    assert_eq!(router.find("x", &http::Method::GET, "/nothing"), None);
}

/// A rest beside a parameter answers what the parameter does not, for every method.
#[test]
fn a_rest_stands_beside_a_parameter() {
    let (router, names) = router(&[
        ("deep", "", "GET /{path*}"),
        ("one", "", "GET /{name}"),
        ("root", "", "GET /"),
        ("all", "", "*"),
        ("head", "", "HEAD /{name}"),
        ("files", "", "GET /files/{path*}"),
        ("file", "", "GET /files/{name}"),
    ]);
    let find = |method: http::Method, path: &str| {
        let found = router.find("x", &method, path)?;
        let parameters =
            found.parameters.0.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
        Some(format!("{}{parameters}", names[usize::from(found.route.0)]))
    };
    for (method, path, expected) in [
        (http::Method::GET, "/a", "one name=a"),
        (http::Method::HEAD, "/a", "head name=a"),
        (http::Method::GET, "/a/b", "deep path=a/b"),
        (http::Method::HEAD, "/a/b", "deep path=a/b"),
        (http::Method::GET, "/", "root"),
        (http::Method::PUT, "/a", "all rest=a"),
        (http::Method::GET, "/files/a", "file name=a"),
        (http::Method::GET, "/files/a/b", "files path=a/b"),
        (http::Method::GET, "/files/", "files"),
    ] {
        assert_eq!(find(method.clone(), path).as_deref(), Some(expected), "{method} {path}");
    }
}

/// Segment by segment: a literal, a parameter, a rest. The first segment that differs decides, whatever comes after it and
/// in whichever order the rules stand.
#[test]
fn a_more_specific_rest_wins_over_parameters_that_begin_earlier() {
    let rules = [
        ("file", "", "GET /files/{name}"),
        ("files", "", "GET /files/{path*}"),
        ("three", "", "GET /{a}/{b}/{c}"),
        ("deep", "", "GET /{a}/{b}/{rest*}"),
        ("b-deep", "", "GET /{a}/b/{rest*}"),
        ("any-of-x", "", "GET /x/{one}/{two}"),
        ("all", "", "*"),
    ];
    let mut reversed = rules;
    reversed.reverse();
    for rules in [rules, reversed] {
        let (router, names) = router(&rules);
        let find = |path: &str| {
            let found = router.find("x", &http::Method::GET, path)?;
            let parameters =
                found.parameters.0.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
            Some(format!("{}{parameters}", names[usize::from(found.route.0)]))
        };
        for (path, expected) in [
            ("/files/x", "file name=x"),
            ("/files/x/y", "files path=x/y"),
            ("/files/x/y/z", "files path=x/y/z"),
            ("/x/y/z", "any-of-x one=y two=z"),
            ("/a/y/z", "three a=a b=y c=z"),
            ("/a/b/z", "b-deep a=a rest=z"),
            ("/a/y/z/1", "deep a=a b=y rest=z/1"),
            ("/a/b/z/1", "b-deep a=a rest=z/1"),
            ("/x/b/z/1", "b-deep a=x rest=z/1"),
            ("/a", "all rest=a"),
        ] {
            assert_eq!(find(path).as_deref(), Some(expected), "{path}");
        }
    }
}

/// Rests that end at different depths, beside parameters: there is room for all of them, and for what answers the rest.
#[test]
fn rests_of_every_depth_stand_beside_parameters() {
    for last in ["GET /{all*}", "*"] {
        let (router, names) = router(&[
            ("two", "", "GET /{a}/{b}"),
            ("one-deep", "", "GET /{a}/{rest*}"),
            ("two-deep", "", "GET /{a}/{b}/{rest*}"),
            ("last", "", last),
        ]);
        let find = |path: &str| {
            router.find("x", &http::Method::GET, path).map(|found| names[usize::from(found.route.0)].clone())
        };
        for (path, expected) in
            [("/1/2", "two"), ("/1/2/3", "two-deep"), ("/1/", "one-deep"), ("/1", "last"), ("/", "last")]
        {
            assert_eq!(find(path).as_deref(), Some(expected), "{path} with {last}");
        }
    }
}

/// RFC 3986 section 6.2.2: what is matched is the resource, not one way to write it.
#[test]
fn a_template_with_encodings_matches() {
    let (router, names) = router(&[("menu", "", "GET /caf%C3%A9/{id}"), ("coded", "", "GET /a%2Fb")]);
    let find = |path: &str| {
        router.find("x", &http::Method::GET, path).map(|found| names[usize::from(found.route.0)].clone())
    };
    assert_eq!(find("/caf%C3%A9/1").as_deref(), Some("menu"));
    assert_eq!(find("/a%2Fb").as_deref(), Some("coded"));
    assert_eq!(find("/a/b"), None);
}
