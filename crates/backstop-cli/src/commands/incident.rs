//! `backstop incident`.

use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use backstop_gateway::status::{NoIncident, tell};
use backstop_policy::Refused;

use crate::args::Incident as Arguments;
use crate::exit::Exit;
use crate::harmless::harmless_lines;
use crate::printer::Printer;

/// Far more than a record becomes: its parts are bounded where it is made.
const RECORD_BYTES_MAX: u64 = 16 << 20;

/// Why there is nothing to tell.
#[derive(Debug, thiserror::Error)]
enum Untold {
    #[error(transparent)]
    Policy(#[from] Box<Refused>),
    #[error("no incident is kept in {}", .0.display())]
    None(PathBuf),
    #[error("{} cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} holds something else", .0.display())]
    Damaged(PathBuf, #[source] NoIncident),
    #[error("{} is larger than {} MiB, and so is no record of an incident", .0.display(), RECORD_BYTES_MAX >> 20)]
    TooLarge(PathBuf),
    #[error("{} cannot be written", .0.display())]
    Write(PathBuf, #[source] io::Error),
}

impl Untold {
    fn hint(&self) -> Option<&'static str> {
        match self {
            Untold::None(_) => Some(
                "records are written where `snapshots` has a disk; a gateway that runs has them at /incidents on its \
                 admin port",
            ),
            Untold::Read(..) => Some("name an ID that `GET /incidents` or the folder has"),
            _ => None,
        }
    }
}

/// Tells what an incident was.
pub(crate) fn incident(arguments: &Arguments, printer: Printer) -> Exit {
    match told(arguments, printer) {
        Ok(()) => Exit::Success,
        Err(error) => {
            printer.error(&error, error.hint().as_ref().map(|hint| hint as &dyn Display));
            Exit::Error
        }
    }
}

fn told(arguments: &Arguments, printer: Printer) -> Result<(), Untold> {
    let loaded = backstop_policy::load(&arguments.policy).map_err(Box::new)?;
    let folder = Path::new(&*loaded.store.path).join("incidents");
    let file = match &arguments.id {
        // A name that leads elsewhere is none of an incident.
        Some(id) if id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') => {
            folder.join(format!("{id}.json"))
        }
        Some(_) => return Err(Untold::None(folder)),
        None => newest(&folder).ok_or(Untold::None(folder))?,
    };
    let text = read(&file)?;
    if arguments.json {
        printer.raw(&text);
        return Ok(());
    }
    let told = tell(&text, &loaded.gateway.name).map_err(|error| Untold::Damaged(file, error))?;
    match &arguments.html {
        Some(out) => fs::write(out, told.html).map_err(|error| Untold::Write(out.clone(), error)),
        None => {
            printer.raw(&harmless_lines(&told.summary));
            Ok(())
        }
    }
}

/// A record; one that is larger than any that is written is none.
fn read(file: &Path) -> Result<String, Untold> {
    let failed = |error| Untold::Read(file.to_owned(), error);
    let mut text = String::new();
    let read =
        fs::File::open(file).and_then(|open| open.take(RECORD_BYTES_MAX + 1).read_to_string(&mut text));
    read.map_err(failed)?;
    if text.len() as u64 > RECORD_BYTES_MAX { Err(Untold::TooLarge(file.to_owned())) } else { Ok(text) }
}

/// The one with the highest number: it stands behind the date.
fn newest(folder: &Path) -> Option<PathBuf> {
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
        name.rsplit_once('-')?.1.parse::<u64>().ok()
    };
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter_map(|path| Some((number(&path)?, path))).max().map(|(_, path)| path)
}
