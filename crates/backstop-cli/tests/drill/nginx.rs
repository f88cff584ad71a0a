//! Ready drills in front of a server that none of us wrote: Debian's nginx, with files.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

use crate::services::{Place, drills, said};
use crate::support::{BOUND, run};

const POLICY: &str = r#"
[gateway]
listen    = "127.0.0.1:8080"
in_flight = 500

[store]
path = "backstop-data"

[dependency.files]
url         = "http://NGINX"
connections = 12

[route.product.public_read]
match      = "GET /{product}"
dependency = "files"
deadline   = "300ms"
in_flight  = 20
key        = ["path.product"]
max_age    = "600ms"
correct    = { type = "application/json", has = ["/id"] }
"#;

struct Nginx(Child, SocketAddr);

impl Nginx {
    fn start(place: &Place) -> Self {
        let addr = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        std::fs::create_dir_all(place.folder.join("files")).unwrap();
        for id in ["1", "2"] {
            place.write(
                &format!("files/{id}.json"),
                &format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}", "text ".repeat(20)),
            );
        }
        place.write("nginx.conf", &format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\nevents {{ worker_connections 256; }}\n\
             http {{\n  access_log off;\n  types {{ application/json json; }}\n  client_body_temp_path t1;\n  proxy_temp_path t2;\n\
             fastcgi_temp_path t3;\n  uwsgi_temp_path t4;\n  scgi_temp_path t5;\n  server {{ listen {addr}; root files; }}\n}}\n"
        ));
        let mut command = Command::new("/usr/sbin/nginx");
        let command = command.args(["-e", "error.log", "-c", "nginx.conf", "-p"]).arg(&place.folder);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("scripts/test-servers installs nginx");
        let within = Instant::now() + BOUND;
        while TcpStream::connect(addr).is_err() {
            assert!(Instant::now() < within, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(child, addr)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn ready_drills_hold_in_front_of_nginx() {
    run(async {
        let place = Place::new(0, POLICY).await;
        let nginx = Nginx::start(&place);
        place.policy(&POLICY.replace("NGINX", &nginx.1.to_string()));
        let output = place.drill(&["--sample", "product=1.json,2.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let held = drills(&place.report(), "held");
        for name in [
            "no-copy",
            "age-limit",
            "other-key",
            "future-date",
            "saturation",
            "slow-dependency",
            "broken-answers",
            "unclassified-errors",
            "recovery",
        ] {
            assert!(held.iter().any(|held| held == name), "{name}: {}", said(&output));
        }
    });
}
