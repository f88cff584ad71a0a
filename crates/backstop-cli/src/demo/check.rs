//! Whether an answer is right, judged by its content and not by what it says of itself.

use std::time::Duration;

use backstop_lab::client::Response;
use backstop_lab::clock::monotonic_ns;

/// From the moment at which the gateway decided until the check: the rest of the deadline, and a busy machine.
const SLACK: Duration = Duration::from_millis(700);

/// The product that was asked for, in the language that was asked for, made no longer ago than accepted. A refusal must be
/// marked as one.
pub(super) fn product(response: &Response, id: u32, language: &str, max_age: Duration) -> bool {
    if response.status() != 200 {
        return is_refusal(response);
    }
    let Ok(product) = response.json() else { return false };
    let made_ns = product["made_ns"].as_u64();
    let age = made_ns.and_then(|made| monotonic_ns().checked_sub(made)).map(Duration::from_nanos);
    let said_age = response.header("age").map_or(Some(0), |age| age.parse::<u64>().ok());
    product["id"].as_str() == Some(id.to_string().as_str())
        && product["lang"] == language
        && product["text"].is_string()
        && age.is_some_and(|age| age <= max_age.saturating_add(SLACK))
        && said_age.is_some_and(|said| said <= max_age.as_secs())
}

/// Recommendations, or the general answer: a whole JSON document.
pub(super) fn recommendations(response: &Response) -> bool {
    match response.status() {
        200 => response.json().is_ok(),
        _ => is_refusal(response),
    }
}

fn is_refusal(response: &Response) -> bool {
    let marked =
        matches!(response.mark(), Ok(Some(mark)) if mark.outcome == "rejected" || mark.outcome == "failed");
    marked && matches!(response.status(), 502..=504) && response.json().is_ok()
}

#[cfg(test)]
mod tests {
    use backstop_lab::client;
    use backstop_lab::origin::Origin;

    use super::super::shop;
    use super::*;

    /// What a product service sends for product 4 in Spanish is that, and no other product and no other language.
    #[test]
    fn a_right_answer_is_about_what_was_asked_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answer = runtime.block_on(async {
            let origin = Origin::start().await.unwrap();
            shop::open_products(&origin);
            client::get(origin.addr(), "/products/4", &[("Accept-Language", "es")]).await.unwrap()
        });
        assert!(product(&answer, 4, "es", Duration::MAX));
        assert!(!product(&answer, 5, "es", Duration::MAX), "another product");
        assert!(!product(&answer, 14, "es", Duration::MAX), "another product");
        assert!(!product(&answer, 4, "en", Duration::MAX), "another language");
    }
}
