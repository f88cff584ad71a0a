//! Where every rule was written, and how files are read.

use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use backstop_engine::policy::Origin;
use backstop_engine::time::Wall;

use crate::diagnostic::Place;

/// What a policy needs from around it: the files that it names (prepared answers, evidence), and the date by which
/// evidence is valid.
pub trait FileSource {
    /// The content of the file.
    ///
    /// `path` is what the policy names, joined to the folder of the policy file if it is relative.
    ///
    /// # Errors
    /// Whatever hinders reading; it becomes a diagnostic at the place that names the file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// A variable of the environment; `None` where there is none, or it is not UTF-8. Of whoever has no environment to read
    /// secrets from there is none.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// The date. The system's, unless the source has one of its own.
    fn now(&self) -> Wall {
        let ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Wall::from_unix_ns(i64::try_from(ns).unwrap_or(i64::MAX))
    }
}

/// More than anything that a policy names may be large.
const MOST_BYTES: u64 = 16 << 20;

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl FileSource for Disk {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Of a file that has no end, as much as no rule accepts any more. What only a writer at its other end would open (a
    /// pipe) is not waited for.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_fifo() || kind.is_socket() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let mut content = Vec::new();
        std::fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// No files at all: for policies that name none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl FileSource for NoFiles {
    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
}

/// From an engine [`Origin`] to the line that someone wrote.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    file: Arc<str>,
    text: Arc<str>,
    entries: Vec<Source>,
}

/// Where a rule was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The key path, such as `route.description.public_read.max_age`.
    pub path: String,
    /// Where: a key with its value, or a table's header.
    pub place: Place,
    /// The text there, cut after its first line, such as `max_age = "60s"`.
    pub text: String,
}

impl SourceMap {
    pub(crate) fn new(file: &str, text: &str, entries: Vec<Source>) -> Self {
        Self { file: file.into(), text: text.into(), entries }
    }

    /// The policy file, as it was named to the parser.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The whole text, as the renderers need it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the rule was written; `None` for a default.
    pub fn get(&self, origin: Origin) -> Option<&Source> {
        self.entries.get(usize::try_from(origin.0).ok()?)
    }

    /// `file:line:column` of the rule; `None` for a default.
    pub fn locate(&self, origin: Origin) -> Option<String> {
        let start = self.get(origin)?.place.start;
        Some(format!("{}:{}:{}", self.file, start.line, start.column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever opens a pipe waits for its writer: `check` hung for ever on a policy that named one.
    #[test]
    fn a_pipe_is_no_file() {
        let folder = std::env::temp_dir().join(format!("backstop-pipe-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = Disk.read(&path).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::InvalidInput, "it is not a file")
        );
        let file = folder.join("file");
        std::fs::write(&file, "content").unwrap();
        assert_eq!(Disk.read(&file).unwrap(), b"content");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
