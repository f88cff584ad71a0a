//! In front of a server that none of us wrote: nginx, with files.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::gateway::folder;
use crate::support::{BOUND, Gateway, Hand, Policy, run};

/// One nginx, in a folder and on a port of its own, ended by its pid.
struct Nginx {
    folder: PathBuf,
    addr: SocketAddr,
    child: Option<Child>,
}

impl Nginx {
    fn start() -> Self {
        let folder = folder();
        let addr = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let mut nginx = Self { addr: addr.expect("a free port"), folder, child: None };
        std::fs::create_dir_all(nginx.folder.join("files/closed")).expect("a folder");
        std::fs::write(nginx.folder.join("nginx.conf"), nginx.configuration()).expect("a file");
        nginx.put("1.json", r#"{"id":"1"}"#);
        nginx.again();
        nginx
    }

    fn configuration(&self) -> String {
        let Self { addr, .. } = self;
        format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{\n  access_log off;\n  types {{ application/json json; text/html html; }}\n\
             client_body_temp_path t1;\n  proxy_temp_path t2;\n  fastcgi_temp_path t3;\n  uwsgi_temp_path t4;\n\
             scgi_temp_path t5;\n  server {{\n    listen {addr};\n    root files;\n    location /closed/ {{ deny all; }}\n  }}\n}}\n"
        )
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::write(self.folder.join("files").join(name), content).expect("a file");
    }

    /// Starts it, and waits until it answers.
    fn again(&mut self) {
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
        let program = program.into_iter().find(|path| Path::new(path).exists()).unwrap_or("nginx");
        let child = Command::new(program)
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("nginx: scripts/test-servers installs it"));
        let mut looks = BOUND.as_millis() / 5;
        while std::net::TcpStream::connect(self.addr).is_err() {
            let log = || std::fs::read_to_string(self.folder.join("error.log")).unwrap_or_default();
            assert!(looks > 0, "nginx does not listen: {}", log());
            looks -= 1;
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As `kill -9` does.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.kill();
    }
}

fn open() -> (Nginx, Gateway, Hand) {
    let nginx = Nginx::start();
    let policy = Policy::empty()
        .dependency("files", nginx.addr, "")
        .route(
            "files.public_read",
            "match = \"GET /{name}\"\ndependency = \"files\"\ndeadline = \"1s\"\nin_flight = 8\nmax_age = \"60s\"\n\
             correct = { type = \"application/json\", has = [\"/id\"] }",
        )
        .route("rest.direct", "match = \"*\"\ndependency = \"files\"\ndeadline = \"1s\"\nin_flight = 8");
    let gateway = Gateway::start(&policy);
    let mut hand = gateway.hand();
    hand.freeze();
    (nginx, gateway, hand)
}

/// The whole path: live, killed, the copy with its age until it is too old, and live again.
#[test]
fn a_server_that_is_killed_is_replaced_by_the_copy_until_it_is_back() {
    run(async {
        let (mut nginx, gateway, mut hand) = open();
        let live = gateway.get("/1.json", &[]).await;
        assert_eq!((live.status(), live.text().as_str()), (200, r#"{"id":"1"}"#));
        assert!(live.header("server").is_some_and(|server| server.starts_with("nginx")), "{:?}", live.head);
        assert_eq!(live.header("backstop"), None);

        nginx.kill();
        hand.advance(Duration::from_secs(60));
        let copy = gateway.get("/1.json", &[]).await;
        assert_eq!((copy.status(), copy.text()), (200, live.text()));
        assert_eq!(copy.header("age"), Some("60"));
        assert_eq!(
            copy.header("backstop"),
            Some("outcome=fallback, source=snapshot, age=60, reason=connect")
        );
        for field in ["etag", "last-modified", "date", "content-type"] {
            assert_eq!(copy.header(field), live.header(field), "{field}");
        }
        hand.advance(Duration::from_nanos(1));
        let refused = gateway.get("/1.json", &[]).await;
        assert_eq!(refused.header("backstop"), Some("outcome=rejected, reason=age, cause=connect"));

        nginx.put("1.json", r#"{"id":"1","new":true}"#);
        nginx.again();
        let live = gateway.get("/1.json", &[]).await;
        assert_eq!((live.text().as_str(), live.header("backstop")), (r#"{"id":"1","new":true}"#, None));
        nginx.kill();
        let copy = gateway.get("/1.json", &[]).await;
        assert_eq!((copy.text(), copy.header("age")), (live.text(), Some("0")));
    });
}

/// A 304 confirms the copy: from then on it is as new as the confirmation.
#[test]
fn a_revalidation_renews_the_date_of_the_copy() {
    run(async {
        let (mut nginx, gateway, mut hand) = open();
        let live = gateway.get("/1.json", &[]).await;
        let tag = live.header("etag").expect("nginx gives one").to_owned();
        hand.advance(Duration::from_secs(50));
        let same = gateway.get("/1.json", &[("If-None-Match", &tag)]).await;
        assert_eq!((same.status(), same.body.len(), same.header("backstop")), (304, 0, None));
        nginx.kill();
        hand.advance(Duration::from_secs(20));
        let copy = gateway.get("/1.json", &[]).await;
        assert_eq!((copy.status(), copy.text(), copy.header("age")), (200, live.text(), Some("20")));
        let conditional = gateway.get("/1.json", &[("If-None-Match", &tag)]).await;
        assert_eq!(
            (conditional.status(), conditional.header("age")),
            (304, Some("20")),
            "also from the copy"
        );
        hand.advance(Duration::from_secs(41));
        assert_eq!(
            gateway.get("/1.json", &[]).await.status(),
            503,
            "70 s after the first, 61 after the last word"
        );
    });
}

/// Its own pages about what is not there or not allowed are its answers, and take the copy with them.
#[test]
fn its_own_error_pages_pass_through() {
    run(async {
        let (mut nginx, gateway, _hand) = open();
        assert_eq!(gateway.get("/1.json", &[]).await.status(), 200);
        let closed = gateway.get("/closed/x", &[]).await;
        assert_eq!((closed.status(), closed.header("content-type")), (403, Some("text/html")));
        assert!(closed.text().contains("403 Forbidden") && closed.header("backstop").is_none());
        let missing = gateway.get("/2.json", &[]).await;
        assert!(missing.status() == 404 && missing.text().contains("404 Not Found"));
        assert_eq!(missing.header("backstop"), None);
        let range = gateway.get("/1.json", &[("Range", "bytes=0-3")]).await;
        assert_eq!((range.status(), range.text().as_str()), (206, r#"{"id"#));

        std::fs::remove_file(nginx.folder.join("files/1.json")).unwrap();
        assert_eq!(gateway.get("/1.json", &[]).await.status(), 404);
        nginx.kill();
        let gone = gateway.get("/1.json", &[]).await;
        assert_eq!(gone.header("backstop"), Some("outcome=rejected, reason=missing, cause=connect"));
    });
}
