//! Another C library's functions in the place of the system's, in a binary that is started with `LD_PRELOAD`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Syncs that do nothing: a disk that confirms what it does not keep.
pub const NO_SYNC: &str = "int fsync(int f) { return 0; }\nint fdatasync(int f) { return 0; }\n";

/// Syncs that take 4 ms, as on common virtual disks, whatever the machine's own disk does meanwhile.
pub const SLOW_SYNC: &str = "#include <time.h>
static int slow(void) {
    struct timespec t = {0, 4000000};
    return nanosleep(&t, 0);
}
int fsync(int f) { return slow(); }
int fdatasync(int f) { return slow(); }
";

/// The library of this source, in a folder.
pub fn library(folder: &Path, source: &str) -> PathBuf {
    let (file, library) = (folder.join("preload.c"), folder.join("preload.so"));
    std::fs::write(&file, source).expect("a file");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&file).status();
    assert!(compiled.expect("a C compiler").success());
    library
}
