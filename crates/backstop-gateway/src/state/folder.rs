//! The folder of small files, on disk.
//!
//! A file is whole or as it was before: its new text is written beside it, synced, and then takes its name. The folder is
//! used by one process at a time, which holds the lock of a file in it; the lock ends with the process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const LOCK: &str = "state.lock";
/// Largest file that is read: twice what the largest incident takes.
const READ_MAX: u64 = 8 << 20;
/// Damaged files that are kept in one folder.
const KEPT_ASIDE: usize = 8;
const ASIDE: &str = ".damaged";

/// Where small files are kept.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: Option<File>,
}

impl Folder {
    /// The folder at `path`, not looked at yet.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), lock: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the folder for this process, and makes it if need be.
    ///
    /// # Errors
    /// A folder that cannot be made, or that another process uses.
    pub(crate) fn hold(&mut self) -> io::Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        fs::create_dir_all(&self.path)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(self.path.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process uses this folder"))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// A file's text; `None` if there is no such file.
    ///
    /// # Errors
    /// A file that cannot be read, is too large, or is no text.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<String>> {
        let file = match File::open(self.path.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        let length = file.take(READ_MAX + 1).read_to_string(&mut text)?;
        if length as u64 > READ_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than any that was written"));
        }
        Ok(Some(text))
    }

    /// What a file holds, if it is there and whole. One that is damaged is set aside and named in the log.
    pub(crate) fn load<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let damaged = match self.read(name) {
            Ok(text) => match parse(&text?) {
                Ok(read) => return Some(read),
                Err(damaged) => damaged,
            },
            Err(error) => error.to_string(),
        };
        let path = self.path.join(name);
        let moved =
            self.set_aside(name).map_or_else(|error| error.to_string(), |to| to.display().to_string());
        tracing::error!(
            target: "backstop::state",
            file = %path.display(),
            damaged,
            moved,
            "a file is not what was written: it is set aside and done without"
        );
        None
    }

    /// Replaces a file as a whole.
    ///
    /// # Errors
    /// What went wrong; the file is then as it was.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.hold()?;
        let path = self.path.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        if !folder.exists() {
            fs::create_dir_all(folder)?;
            sync(&self.path)?;
        }
        let new = path.with_added_extension("new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(error) = written.and_then(|()| fs::rename(&new, &path)) {
            // It takes room on a disk that may have none.
            let _nothing_more_to_do = fs::remove_file(&new);
            return Err(error);
        }
        sync(folder)
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// What went wrong.
    pub(crate) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.hold()?;
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Err(_) => Ok(()),
            Ok(()) => sync(path.parent().unwrap_or(&self.path)),
        }
    }

    /// The names of the files in a folder below.
    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.path.join(below)) else { return Vec::new() };
        files.flatten().filter_map(|file| file.file_name().into_string().ok()).collect()
    }

    /// Moves a damaged file out of the way. Where it is now.
    ///
    /// # Errors
    /// What went wrong.
    pub(crate) fn set_aside(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        let mut aside = path.clone().into_os_string();
        aside.push(ASIDE);
        let aside = PathBuf::from(aside);
        fs::rename(&path, &aside)?;
        sync(folder)?;
        let mut damaged: Vec<PathBuf> = fs::read_dir(folder)?
            .flatten()
            .map(|file| file.path())
            .filter(|file| file.to_str().is_some_and(|file| file.ends_with(ASIDE)) && *file != aside)
            .collect();
        damaged.sort_unstable();
        let excess = (damaged.len() + 1).saturating_sub(KEPT_ASIDE);
        for old in damaged.into_iter().take(excess) {
            // One too many is no reason to fail.
            let _left_behind = fs::remove_file(old);
        }
        Ok(aside)
    }
}

/// Makes the names in a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Folder, below: &str) -> Vec<String> {
        let mut names = folder.names(below);
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_removed_once() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(place.path().join("data"));
        assert_eq!(folder.read("below/a.json").unwrap(), None);
        folder.write("below/a.json", b"first, and longer").unwrap();
        folder.write("below/a.json", b"second").unwrap();
        assert_eq!(folder.read("below/a.json").unwrap().as_deref(), Some("second"));
        assert_eq!(names(&folder, "below"), ["a.json"], "nothing is left beside it");
        folder.remove("below/a.json").unwrap();
        folder.remove("below/a.json").unwrap();
        assert_eq!(names(&folder, "below"), [""; 0]);
    }

    /// A folder stands where the new text would be written.
    #[test]
    fn what_cannot_be_written_leaves_the_file_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(place.path());
        folder.write("a.json", b"first").unwrap();
        fs::create_dir(place.path().join("a.json.new")).unwrap();
        assert!(folder.write("a.json", b"second").is_err());
        assert_eq!(folder.read("a.json").unwrap().as_deref(), Some("first"));
    }

    #[test]
    fn one_process_at_a_time_uses_it() {
        let place = tempfile::tempdir().unwrap();
        let mut first = Folder::new(place.path());
        first.hold().unwrap();
        let mut second = Folder::new(place.path());
        assert_eq!(second.write("a.json", b"x").unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        second.write("a.json", b"x").unwrap();
    }

    #[test]
    fn damaged_files_are_kept_up_to_a_number() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(place.path());
        for number in 10..20 {
            folder.write(&format!("{number}.json"), b"x").unwrap();
            let aside = folder.set_aside(&format!("{number}.json")).unwrap();
            assert_eq!(aside, place.path().join(format!("{number}.json.damaged")));
        }
        let expected: Vec<String> = (12..20).map(|number| format!("{number}.json.damaged")).collect();
        assert_eq!(names(&folder, ""), [expected, vec![LOCK.to_owned()]].concat());
    }

    #[test]
    fn what_is_too_large_or_no_text_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path());
        fs::write(place.path().join("large"), vec![b' '; READ_MAX as usize + 1]).unwrap();
        fs::write(place.path().join("full"), vec![b' '; READ_MAX as usize]).unwrap();
        fs::write(place.path().join("binary"), [0xff]).unwrap();
        assert!(folder.read("large").is_err() && folder.read("binary").is_err());
        assert_eq!(folder.read("full").unwrap().map(|text| text.len() as u64), Some(READ_MAX));
    }
}
