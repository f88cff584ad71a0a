//! What a drill never does, and how it refuses.

use std::net::TcpListener;

use backstop_lab::payments::Payments;

use crate::services::{Place, said};
use crate::support::run;

const PAYMENTS: &str = include_str!("../../../../examples/payments.toml");

/// The example's payments with a service that executes whatever it receives.
async fn shop(payments: &Payments) -> Place {
    let policy = PAYMENTS.replace("127.0.0.1:9001", &payments.addr().to_string());
    let policy = policy.replace("\"paid\", \"captured\"", "\"succeeded\"");
    Place::new(3, &policy.replace("/var/lib/backstop", "backstop-data")).await
}

#[test]
fn an_effect_is_not_called_without_a_sandbox() {
    run(async {
        let payments = Payments::start().await.expect("a service");
        let place = shop(&payments).await;
        place.write(
            "drill.toml",
            "duration = \"1s\"\nload = [{ request = \"POST /payments\", body = '{\"amount\":5}' }]\n",
        );
        let output = place.drill(&["drill.toml"]);
        let said_of_it = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said_of_it}");
        assert!(said_of_it.contains("`pay`, which has effects"), "{said_of_it}");
        let output = place.drill(&["--ready", "write-once", "--ready", "authorizer-down"]);
        let said_of_it = said(&output);
        assert_eq!(output.status.code(), Some(2), "nothing is left to rehearse: {said_of_it}");
        assert!(said_of_it.contains("it has effects, and the drill is no sandbox"), "{said_of_it}");
        assert_eq!(payments.counts().forwards_in_all(), 0, "nothing came");
    });
}

#[test]
fn in_a_sandbox_a_payment_happens_once_at_most() {
    run(async {
        let payments = Payments::start().await.expect("a service");
        let place = shop(&payments).await;
        let drill = "sandbox = true\nduration = \"1s\"\nload = [{ request = \"POST /payments\", rate = \"20/s\", body = '{\"amount\":5}', headers = { authorization = \"Bearer a\", content-type = \"application/json\" } }]\n";
        place.write("drill.toml", drill);
        let output = place.drill(&["drill.toml", "--ready", "write-once"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(payments.counts().forwards_in_all() > 0, "this time they came");
    });
}

#[test]
fn a_write_reaches_no_dependency_without_a_sandbox() {
    run(async {
        let place = Place::new(2, include_str!("../../../../examples/shop.toml")).await;
        let output = place.drill(&["--ready", "write-once"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let writes =
            place.services.iter().map(|service| service.count_where(|request| request.method != "GET"));
        assert_eq!(writes.sum::<usize>(), 0);
    });
}

#[test]
fn what_cannot_be_reached_is_told_before_anything_is_broken() {
    run(async {
        let place = Place::new(2, include_str!("../../../../examples/shop.toml")).await;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
        let policy = std::fs::read_to_string(place.folder.join("policy.toml")).expect("the policy");
        let catalog = place.services.first().expect("a service").addr().to_string();
        place.policy(&policy.replace(&catalog, &free.to_string()));
        let output = place.drill(&["--ready", "no-copy"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("`catalog` cannot be reached at {free}")), "{said}");
    });
}

#[test]
fn a_drill_file_is_refused_with_line_and_column() {
    run(async {
        let place = Place::new(2, include_str!("../../../../examples/shop.toml")).await;
        let text = "duration = \"1s\"\nload = [{ request = \"GET /products/1\" }]\n\n[[fault]]\ndependency = \"catalogue\"\nkind = \"refuse\"\nfrom = \"0\"\nto = \"1s\"\n";
        place.write("drill.toml", text);
        let output = place.drill(&["drill.toml"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("drill.toml:5:14") && said.contains("did you mean `catalog`?"), "{said}");
    });
}

#[test]
fn an_effect_is_not_called_by_another_spelling_of_its_path() {
    run(async {
        let payments = Payments::start().await.expect("a service");
        let place = shop(&payments).await;
        place.write(
            "drill.toml",
            "duration = \"1s\"\nload = [{ request = \"POST /%70ayments\", body = '{\"amount\":5}' }]\n",
        );
        let output = place.drill(&["drill.toml"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("`pay`, which has effects"), "{said}");
        assert_eq!(payments.counts().forwards_in_all(), 0, "nothing came");
    });
}

/// Given up by a signal it leaves nothing behind, and what another one left behind is in nobody's way.
#[test]
fn a_drill_that_is_given_up_leaves_no_folder() {
    run(async {
        let place = Place::new(2, include_str!("../../../../examples/shop.toml")).await;
        let temporary = place.folder.join("temporary");
        std::fs::create_dir_all(&temporary).expect("a folder");
        let left = || std::fs::read_dir(&temporary).expect("the folder").count();
        for (signal, code) in [("INT", 130), ("TERM", 143)] {
            let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_backstop"))
                .current_dir(&place.folder)
                .args(["drill", "policy.toml", "--ready", "age-limit"])
                .env("TMPDIR", &temporary)
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("it starts");
            // Until its gateway has been asked: then everything is there that could be left behind.
            let asked = || place.services.iter().map(|service| service.count()).sum::<u64>();
            let before = asked();
            let is_asked = async {
                while asked() == before {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(crate::support::BOUND, is_asked).await.expect("something is asked");
            assert_eq!(left(), 1);
            let sent = std::process::Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status();
            assert!(sent.expect("kill").success());
            let ended = child.wait().expect("it ends");
            assert_eq!(ended.code(), Some(code), "{signal}");
            assert_eq!(left(), 0, "{signal}");
        }
    });
}

#[test]
fn an_expectation_without_anything_to_look_at_is_told_and_fails() {
    run(async {
        let place = Place::new(2, include_str!("../../../../examples/shop.toml")).await;
        let text = "duration = \"500ms\"\nload = [{ request = \"GET /products/1\" }]\n\n[[expect]]\nroute = \"recommendations\"\noutcome = \"normal\"\n";
        place.write("drill.toml", text);
        let output = place.drill(&["drill.toml"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("FAILED") && said.contains("there was nothing to look at"), "{said}");
        assert_eq!(place.report()["held"], false);
    });
}
