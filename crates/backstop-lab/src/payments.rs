//! A small payment service that never asks itself whether it has seen a payment before.
//!
//! It executes **once for each request that it has received whole**: a payment that is sent to it twice happens twice, and can
//! be counted. Everything else about it is what real ones do, and what goes wrong with them is set by [`Fault`] and
//! [`StatusFault`] while it runs.
//!
//! | request | answer |
//! |---|---|
//! | `POST /payments` with `Idempotency-Key` and `{"amount":N}` | 201 `{"id":"pay_1","status":"succeeded","operation_id":KEY,"amount":N}` and `Location: /payments/pay_1`, after the effect is in the log |
//! | the same, `N` = 402 | 402 with `"status":"declined"`, and no effect |
//! | the same, `N` another number from 400 to 499 | that status, `{"error":{"code":"invalid_request"}}`, and no effect |
//! | `GET /payments/by-key/{KEY}` | 200 with `"status"` `succeeded`, `processing` or `declined` |
//! | the same, of a payment that it does not know | 404 `{"error":{"code":"resource_missing"}}` |
//!
//! A key is compared without the quotes of a structured field, so `"k-1"` and `k-1` are the same payment.
//!
//! With a folder its state survives a restart: `effects.jsonl` holds one [`Effect`] per line, synced before the answer;
//! `arrivals.jsonl` what reached it. Faults do not survive, nor does what had not happened yet.
//!
//! ```
//! use backstop_lab::{
//!     client,
//!     origin::Then,
//!     payments::{Fault, Payments, Which},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let payments = Payments::start().await?;
//! payments.fail(Which::next(1), Fault::answer_lost(Then::Reset));
//!
//! let key = [("Idempotency-Key", "k-1")];
//! let lost = client::request(payments.addr(), "POST", "/payments", &key, br#"{"amount":10}"#).await;
//! assert!(lost.is_err());
//! let asked = client::get(payments.addr(), "/payments/by-key/k-1", &[]).await?;
//! assert_eq!(asked.json()?["status"], "succeeded");
//! assert_eq!(payments.effects_of("k-1"), 1);
//! # Ok(())
//! # }
//! ```

mod book;
mod counts;
mod fault;
mod handle;
mod key;
mod log;
pub mod oracle;
mod serve;
mod which;

pub use counts::Counts;
pub use fault::{Fault, StatusFault, When};
pub use handle::{CountsTimeout, Payments};
pub use log::{Effect, read_effects};
pub use which::Which;
