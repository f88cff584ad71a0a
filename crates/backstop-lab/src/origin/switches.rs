//! Switches of the whole origin.

use std::time::Duration;

/// How `Expect: 100-continue` is answered. The body is read in every case; bytes of it that come first make the
/// interim answer needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectContinue {
    /// With `100 Continue` at once.
    AtOnce,
    /// Never.
    Never,
    /// With `100 Continue` after this long.
    After(Duration),
}

/// What happens to a connection when it has been accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAccept {
    /// It is served.
    Serve,
    /// It is closed (FIN) before a byte is read.
    Close,
    /// It is reset (RST) before a byte is read. The RST may overtake the end of the peer's `connect`, which then
    /// fails with "connection reset".
    Reset,
    /// It stays open; nothing is read from it and nothing sent.
    Hang,
}
