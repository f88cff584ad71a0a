//! The house: crates use lower floors only, files stay small, and the documents agree with the code.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests stop the test")]

mod arrows;
mod decisions;
mod first_screen;
mod guarantees;
mod links;
mod repository;
mod tables;
mod tidy;
mod words;
