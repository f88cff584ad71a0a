//! How a command ended.

/// The exit status, by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything is as it should be: 0.
    Success,
    /// The command did its work and the finding is bad: 1.
    Failure,
    /// The command could not do its work: 2.
    Error,
    /// A signal ended it, which is no finding of any kind: 128 and its number, as a shell has it.
    Signal(u8),
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Error => 2,
            Exit::Signal(number) => number.saturating_add(128),
        })
    }
}
