//! Being there, refusing and hanging.

use std::time::Duration;

use backstop_lab::{
    client::{self, ClientError, Connection},
    origin::Origin,
};

#[tokio::test]
async fn a_refusing_origin_refuses_and_comes_back_on_its_port() {
    let origin = Origin::start().await.unwrap();
    let addr = origin.addr();
    let mut kept = Connection::open(addr).await.unwrap();
    kept.get("/", &[]).await.unwrap();
    for round in 1..=3 {
        origin.refuse().await.unwrap();
        let error = client::get(addr, "/", &[]).await.unwrap_err();
        assert!(error.is_refused(), "{error}");
        assert_eq!(kept.get("/", &[]).await.unwrap().status(), 200, "open connections go on");
        origin.accept_again().await.unwrap();
        client::get(addr, "/", &[]).await.unwrap();
        assert_eq!(origin.connections_accepted(), 1 + round);
    }
}

#[tokio::test]
async fn a_full_backlog_lets_connects_hang() {
    let origin = Origin::start().await.unwrap();
    let addr = origin.addr();
    for _ in 0..2 {
        origin.fill_backlog().await.unwrap();
        let bound = Duration::from_millis(400);
        let hanging = tokio::join!(
            Connection::open_within(addr, bound),
            Connection::open_within(addr, bound),
            Connection::open_within(addr, bound)
        );
        for opened in [hanging.0, hanging.1, hanging.2] {
            assert!(matches!(opened.unwrap_err(), ClientError::ConnectTimeout(_)));
        }
        assert_eq!(origin.count(), 0);
        origin.accept_again().await.unwrap();
        client::get(addr, "/", &[]).await.unwrap();
        origin.reset();
    }
}

#[tokio::test]
async fn dropping_the_last_handle_frees_the_port_at_once() {
    let origin = Origin::start().await.unwrap();
    let addr = origin.addr();
    let clone = origin.clone();
    drop(origin);
    let mut kept = Connection::open(addr).await.unwrap();
    assert_eq!(kept.get("/", &[]).await.unwrap().status(), 200);
    drop(clone);
    assert!(kept.get("/", &[]).await.is_err());
    assert!(client::get(addr, "/", &[]).await.unwrap_err().is_refused());
    let again = Origin::builder().addr(addr).start().await.unwrap();
    assert_eq!(again.addr(), addr);
    assert_eq!(again.url(), format!("http://{addr}"));
}
