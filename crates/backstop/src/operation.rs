//! Operations that must happen once, in HTTP: what a request says of one, what an answer proves, and what a client hears.
//!
//! | room | what is done there |
//! |---|---|
//! | [`secret`] | what is compared and never stored becomes a keyed digest |
//! | [`key`] | the client's key of its operation, from a field or from the content |
//! | [`fingerprint`] | what makes two requests with one key the same request |
//! | [`matching`] | which kind of answer one is, by the contract |
//! | [`echo`] | whether a status answer is about this operation |
//! | [`listed`] | which item of a list it is |
//! | [`member`] | one member of a JSON text, as it was written |
//! | [`asked`](Asked) | what a request asks of the ledger |
//! | [`following`] | whether "in verification" is true |
//! | [`document`] | what is said of an operation |
//!
//! What an operation is in, and what leads on from there, is the engine's ([`backstop_engine::operation`]); the ledger keeps it
//! ([`backstop_store::ledger`]).

mod asked;
pub mod document;
pub mod echo;
pub mod fingerprint;
pub mod following;
pub mod key;
pub mod listed;
pub mod matching;
pub mod member;
pub mod secret;

pub(crate) use asked::Wants;
pub use asked::{Asked, NotAsked, Operations, Successes};
