//! The service as a person with `curl` meets it: broken catalog, copy with its age, healed catalog.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stop the test")]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

struct Running {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
    shop: SocketAddr,
    catalog: SocketAddr,
}

impl Running {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_axum_service"))
            .args(["127.0.0.1:0", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = || {
            let line = output.next().unwrap().unwrap();
            let (_, rest) = line.split_once("http://").unwrap();
            rest.split('/').next().unwrap().parse().unwrap()
        };
        let (shop, catalog) = (address(), address());
        Self { process, output, shop, catalog }
    }

    fn get(&self, path: &str) -> Answer {
        ask(self.shop, "GET", path)
    }

    fn tell_catalog(&self, path: &str) -> String {
        ask(self.catalog, "POST", path).body
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already over where the test went well.
        let _over = self.process.kill();
        let _over = self.process.wait();
    }
}

struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

fn ask(address: SocketAddr, method: &str, path: &str) -> Answer {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { panic!("no answer: {answer:?}") };
    Answer { head: head.to_owned(), body: body.to_owned() }
}

const FIRST: &str = r#""text":"product 42, as described in read 1""#;

#[test]
fn the_shop_shows_its_products_while_the_catalog_is_broken() {
    let mut running = Running::start();

    let healthy = running.get("/products/42");
    assert_eq!((healthy.status(), healthy.field("backstop")), ("200", None));
    assert!(
        healthy.body.contains(FIRST) && healthy.body.contains(r#""source":"primary""#),
        "{}",
        healthy.body
    );

    assert_eq!(running.tell_catalog("/break"), "broken\n");
    let copy = running.get("/products/42");
    assert!(copy.body.contains(FIRST) && copy.body.contains(r#""source":"snapshot""#), "{}", copy.body);
    let age: u64 = copy.field("age").unwrap().parse().unwrap();
    assert!(age <= 60 && copy.body.contains(&format!(r#""age_seconds":{age}"#)), "{}", copy.body);
    let field = format!("outcome=fallback, source=snapshot, age={age}, reason=unavailable");
    assert_eq!((copy.status(), copy.field("backstop")), ("200", Some(field.as_str())));

    let never_seen = running.get("/products/43");
    assert_eq!(
        (never_seen.status(), never_seen.field("content-type")),
        ("503", Some("application/problem+json"))
    );
    assert!(never_seen.body.contains("snapshot-missing"), "{}", never_seen.body);

    assert_eq!(running.tell_catalog("/heal"), "healed\n");
    let healed = running.get("/products/42");
    assert!(
        healed.body.contains("read 2") && healed.body.contains(r#""source":"primary""#),
        "{}",
        healed.body
    );
    let unknown = running.get("/products/1000");
    assert_eq!((unknown.status(), unknown.body.as_str()), ("404", "no such product\n"));

    let interrupt = Command::new("kill").args(["-INT", &running.process.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert!(running.process.wait().unwrap().success());
    assert_eq!(running.output.next().unwrap().unwrap(), "stopped");
}
