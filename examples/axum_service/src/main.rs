//! A shop that goes on showing its products while its catalog is broken.
//!
//! `shop.rs` is the part to copy. `catalog.rs` is a stand-in for the service behind, which can be broken and healed
//! from outside. See the README for a walk through it.

mod catalog;
mod shop;

use tokio::net::TcpListener;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut addresses = std::env::args().skip(1);
    let mut listener = async |default: &str| {
        let address = addresses.next().unwrap_or_else(|| default.to_owned());
        TcpListener::bind(address).await
    };
    let shop = listener("127.0.0.1:3000").await?;
    let catalog = listener("127.0.0.1:3001").await?;
    let catalog_url = format!("http://{}", catalog.local_addr()?);
    say(&format!("shop:    http://{}/products/42", shop.local_addr()?));
    say(&format!("catalog: {catalog_url}"));

    let shop = axum::serve(shop, shop::router(&catalog_url)?).with_graceful_shutdown(ctrl_c());
    let catalog = axum::serve(catalog, catalog::router()).with_graceful_shutdown(ctrl_c());
    tokio::try_join!(shop, catalog)?;
    say("stopped");
    Ok(())
}

async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without the signal there is nothing to wait for but the process's end.
        std::future::pending().await
    }
}

#[expect(clippy::print_stdout, reason = "somebody watches")]
fn say(line: &str) {
    println!("{line}");
}
