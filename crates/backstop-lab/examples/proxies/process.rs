//! Processes: started, pinned, measured, ended by their pid.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) type Failed = Box<dyn std::error::Error>;

/// A proxy under test; ended when dropped.
pub(crate) struct Process {
    child: Child,
    folder: PathBuf,
}

impl Process {
    /// Starts a program on these cores (`0`, say, or `0-1`), in a folder that goes with it.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        folder: PathBuf,
        cores: &str,
    ) -> Result<Self, Failed> {
        let child = Command::new("taskset")
            .args(["-c", cores])
            .arg(program)
            .args(arguments)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, folder })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Time on a core so far, of all threads.
    pub(crate) fn cpu(&self) -> Result<Duration, Failed> {
        let mut total = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            total += text.split_whitespace().next().unwrap_or("0").parse::<u64>()?;
        }
        Ok(Duration::from_nanos(total))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
        let _left_behind = std::fs::remove_dir_all(&self.folder);
    }
}

/// A new folder for one process.
pub(crate) fn folder() -> Result<PathBuf, Failed> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("backstop-bench-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A port that nobody listens on at this moment.
pub(crate) fn free_port() -> Result<u16, Failed> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
