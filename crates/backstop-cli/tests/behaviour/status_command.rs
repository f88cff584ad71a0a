//! `backstop status`: the same in a terminal.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::gateway::{folder, output};
use crate::support::state::{current, file_of, file_until, policy, second};
use crate::support::{Shop, run};

fn status(shop: &Shop, more: &[&str]) -> (Option<i32>, String) {
    let admin = shop.gateway.admin.to_string();
    let arguments: Vec<&str> = ["status", "--admin", &admin].iter().chain(more).copied().collect();
    let (status, told, errors) = output(&arguments, shop.gateway.folder());
    assert_eq!(errors, "", "{told}");
    (status.code(), told)
}

#[test]
fn it_says_how_a_gateway_stands_and_its_status_says_whether_that_is_well() {
    run(async {
        let shop = Shop::open().await;
        shop.get("1").await;
        shop.gateway.metrics_until(|metrics| metrics.sum("backstop_requests_total", &[]) == 1.0).await;
        let (code, told) = status(&shop, &[]);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.starts_with("NORMAL  edge  "), "{told}");
        assert!(told.contains("1 of 3 routes answer normally"), "{told}");

        shop.goes_down().await;
        shop.get("1").await;
        shop.gateway.metrics_until(|metrics| metrics.sum("backstop_requests_total", &[]) == 2.0).await;
        let (code, told) = status(&shop, &[]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.starts_with("DEGRADED  edge  "), "{told}");
        let line = told.lines().find(|line| line.starts_with("description")).unwrap();
        assert!(line.contains("degraded") && line.contains("copy") && line.contains("connect"), "{line}");
        assert!(!told.contains('\u{1b}'), "no colour where no terminal is");
        assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");

        let (code, told) = status(&shop, &["--json"]);
        let value: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (code, value["state"].as_str(), value["format"].as_u64()),
            (Some(1), Some("degraded"), Some(1))
        );
    });
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let folder = folder();
    let (status, told, errors) = output(&["status", "--admin", &free], &folder);
    assert_eq!((status.code(), told.as_str()), (Some(2), ""));
    assert!(errors.starts_with(&format!("error: no gateway answers at {free}\n")), "{errors}");
    let (status, _, errors) = output(&["status", "missing.toml"], &folder);
    assert_eq!(status.code(), Some(2));
    assert!(errors.contains("missing.toml"), "{errors}");
}

/// It goes on while the gateway is away, says since when, and ends with what it saw last.
#[test]
fn a_watch_survives_the_gateway() {
    run(async {
        let shop = Shop::open().await;
        let admin = shop.gateway.admin.to_string();
        let mut watch = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .args(["status", "--watch", "--admin", &admin])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("NORMAL  edge")));
        assert!(lines.any(|line| line.starts_with("NORMAL  edge")), "again, by itself");
        shop.gateway.signal("KILL");
        let gone = lines.find(|line| line.contains("nothing was heard")).unwrap();
        assert!(gone.starts_with(&format!("no gateway answers at {admin}. Since ")), "{gone}");
        let interrupted = Command::new("kill").args(["-INT", &watch.id().to_string()]).status().unwrap();
        assert!(interrupted.success());
        assert_eq!(watch.wait().unwrap().code(), Some(0), "all was well when it was last heard of");
    });
}

/// By hand: ten reads were answered with copies before the gateway was killed.
#[test]
fn an_incident_is_told_from_its_file_while_the_gateway_is_down() {
    run(async {
        let mut shop = Shop::with(policy).await;
        shop.get("1").await;
        shop.goes_down().await;
        for _ in 0..10 {
            shop.get("1").await;
        }
        shop.gateway.metrics_until(|metrics| metrics.sum("backstop_requests_total", &[]) == 11.0).await;
        second(&shop.gateway, &mut shop.hand).await;
        let id = current(&shop.gateway).await.expect("an incident");
        file_until(&file_of(&shop.gateway, &id), |file| file["requests"]["fallback"] == 10).await;
        shop.gateway.signal("KILL");
        let tell = |more: &[&str]| {
            let arguments: Vec<&str> = ["incident", "policy.toml"].iter().chain(more).copied().collect();
            let (status, told, errors) = output(&arguments, shop.gateway.folder());
            assert_eq!((status.code(), errors.as_str()), (Some(0), ""), "{told}");
            told
        };
        let told = tell(&[]);
        assert!(told.starts_with(&format!("{id}  Degraded\n")), "{told}");
        assert!(told.contains("The cause: catalog refuses connections (connect)."), "{told}");
        assert!(told.contains("10 alternatives were served, 10 of them copies"), "{told}");
        tell(&[&id, "--html", "report.html"]);
        let html = std::fs::read_to_string(shop.gateway.folder().join("report.html")).unwrap();
        assert!(html.starts_with("<!doctype html>") && html.contains(&id));
        let value: Value = serde_json::from_str(&tell(&[&id, "--json"])).unwrap();
        assert_eq!(value["id"], id.as_str());
        let (status, _, errors) = output(&["incident", "policy.toml", "../breakers"], shop.gateway.folder());
        assert_eq!(status.code(), Some(2), "{errors}");

        // Whoever may write there does not steer the terminal of who reads it, and does not fill its memory.
        let file = file_of(&shop.gateway, &id);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("catalog", "cat\\u001b]0;mine\\u0007\\u009b31m\\u202ealog"))
            .unwrap();
        let told = tell(&[]);
        assert!(told.contains("The cause: cat\u{fffd}]0;mine\u{fffd}\u{fffd}31m\u{fffd}alog"), "{told}");
        std::fs::write(&file, vec![b' '; (16 << 20) + 1]).unwrap();
        let (status, _, errors) = output(&["incident", "policy.toml"], shop.gateway.folder());
        assert_eq!(status.code(), Some(2));
        assert!(errors.contains("is larger than 16 MiB, and so is no record of an incident"), "{errors}");
    });
}
