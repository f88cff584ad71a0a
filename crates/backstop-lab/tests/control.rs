//! The control face and the shop.

use std::net::SocketAddr;

use backstop_lab::{
    client::{self, Ending},
    origin::Origin,
    shop,
};

async fn post(addr: SocketAddr, target: &str, body: &str) -> Result<(u16, String), client::ClientError> {
    let response = client::request(addr, "POST", target, &[], body.as_bytes()).await?;
    Ok((response.status(), response.text()))
}

#[tokio::test]
async fn another_process_can_drive_the_origin() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let origin = Origin::builder().control(any).start().await.unwrap();
    let control = origin.control_addr().unwrap();
    let rule = r#"{"method":"GET","prefix":"/p/","behaviours":[
        {"fault":"reset"},
        {"status":503,"headers":[["Retry-After","7"]],"body":"{}","delay_ms":1}]}"#;
    assert_eq!(post(control, "/control/on", rule).await.unwrap().0, 200);
    assert_eq!(client::get(origin.addr(), "/p/1", &[]).await.unwrap_err().ending(), Some(Ending::Reset));
    let response = client::get(origin.addr(), "/p/1", &[]).await.unwrap();
    assert_eq!((response.status(), response.header("retry-after")), (503, Some("7")));
    assert_eq!(client::get(origin.addr(), "/p/1", &[]).await.unwrap().status(), 200);

    let stats = client::get(control, "/control/stats", &[]).await.unwrap().json().unwrap();
    assert_eq!(stats["requests"], 3);
    assert_eq!(post(control, "/control/refuse", "").await.unwrap().0, 200);
    assert!(client::get(origin.addr(), "/", &[]).await.unwrap_err().is_refused());
    assert_eq!(post(control, "/control/accept_again", "").await.unwrap().0, 200);
    assert_eq!(post(control, "/control/default", r#"{"fault":"html_200"}"#).await.unwrap().0, 200);
    assert!(client::get(origin.addr(), "/", &[]).await.unwrap().text().contains("html"));
    assert_eq!(post(control, "/control/reset", "").await.unwrap().0, 200);
    assert_eq!(origin.count(), 0);
}

#[tokio::test]
async fn wrong_controls_are_refused_with_a_reason() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let origin = Origin::builder().control(any).start().await.unwrap();
    let control = origin.control_addr().unwrap();
    for (wrong, reason) in [
        (r#"{"behaviours":[]}"#, "needs a behaviour"),
        (r#"{"path":"/a","prefix":"/b","behaviours":[{}]}"#, "not both"),
        (r#"{"behaviours":[{"fault":"nonsense"}]}"#, "nonsense"),
        (r#"{"behaviours":[{"colour":"red"}]}"#, "colour"),
    ] {
        let (status, text) = post(control, "/control/on", wrong).await.unwrap();
        assert_eq!(status, 400);
        assert!(text.contains(reason), "{text}");
    }
    assert_eq!(post(control, "/control/nothing", "").await.unwrap().0, 404);
}

#[tokio::test]
async fn the_shop_answers_in_the_language_asked_for() {
    let origin = Origin::start().await.unwrap();
    shop::open(&origin);
    for (wanted, text) in [("es-ES, en;q=0.5", "Producto 42"), ("de", "Produkt 42"), ("fr", "Product 42")] {
        let response =
            client::get(origin.addr(), "/products/42", &[("Accept-Language", wanted)]).await.unwrap();
        let product = response.json().unwrap();
        assert_eq!((product["id"].as_str(), product["text"].as_str()), (Some("42"), Some(text)));
        assert_eq!(response.header("content-language"), product["lang"].as_str());
        assert_eq!(response.header("vary"), Some("Accept-Language"));
    }
    let ids = client::get(origin.addr(), "/products/42/recommendations", &[]).await.unwrap().json().unwrap();
    assert_eq!(ids.as_array().unwrap().len(), 3);
    assert_eq!(post(origin.addr(), "/elsewhere", "").await.unwrap().0, 404);
    let written = client::request(origin.addr(), "PUT", "/products/42", &[], b"{}").await.unwrap();
    assert_eq!((written.status(), written.body.len()), (204, 0));
}
