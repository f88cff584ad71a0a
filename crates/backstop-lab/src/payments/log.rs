//! What happened, one line per effect, on disk before anybody is told.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The file of effects in a service's folder.
pub(super) const EFFECTS: &str = "effects.jsonl";

/// One payment that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// From 1, in the order in which they happened.
    pub sequence: u64,
    /// The key that the request came with.
    pub operation_id: String,
    /// How much.
    pub amount: u64,
    /// When, in milliseconds since 1970.
    pub at_unix_ms: u64,
}

/// The effects in a log, in the order in which they happened. A last line without its end is none: nobody was told of it.
///
/// # Errors
///
/// When the file cannot be read, or a whole line in it is no effect.
pub fn read_effects(path: &Path) -> io::Result<Vec<Effect>> {
    Ok(read_lines(path)?.0)
}

/// What stands in the whole lines of a file, and how many bytes these are. A file that is not there has none.
pub(super) fn read_lines<T: DeserializeOwned>(path: &Path) -> io::Result<(Vec<T>, u64)> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let whole = bytes.get(..end).unwrap_or_default();
    let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = lines.enumerate().map(|(at, line)| {
        serde_json::from_slice(line).map_err(|error| {
            let what = format!("{}, line {}: {error}", path.display(), at + 1);
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    });
    Ok((read.collect::<io::Result<_>>()?, end as u64))
}

/// Opens a file to write lines behind its first `whole` bytes.
pub(super) fn open_behind(path: &Path, whole: u64) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    file.set_len(whole)?;
    Ok(file)
}

/// One line of a file.
pub(super) fn line(of: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}

/// The effects so far, in memory, and in a file if there is one.
#[derive(Debug, Default)]
pub(super) struct EffectLog {
    pub(super) effects: Vec<Effect>,
    file: Option<File>,
}

impl EffectLog {
    /// Goes on with the log in a folder.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(EFFECTS);
        let (effects, whole) = read_lines(&path)?;
        let file = open_behind(&path, whole)?;
        file.sync_all()?;
        // So that the file itself is found again.
        File::open(folder)?.sync_all()?;
        Ok(Self { effects, file: Some(file) })
    }

    /// An effect happens. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// When the disk fails. Whether it happened then is not known.
    pub(super) fn execute(&mut self, key: &str, amount: u64) -> io::Result<Effect> {
        let sequence = self.effects.last().map_or(0, |last| last.sequence) + 1;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let effect = Effect { sequence, operation_id: key.to_owned(), amount, at_unix_ms };
        if let Some(file) = &mut self.file {
            file.write_all(&line(&effect)?)?;
            file.sync_data()?;
        }
        self.effects.push(effect.clone());
        Ok(effect)
    }

    /// The first effect of a key.
    pub(super) fn first_of(&self, key: &str) -> Option<&Effect> {
        self.effects.iter().find(|effect| effect.operation_id == key)
    }
}
