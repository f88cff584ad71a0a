//! An upstream that does with each request what a test says, and knows all that reached it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The longest that a test waits for something.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// What is done with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// Nothing, until the upstream is dropped.
    Hang,
}

/// An answer with this content, whole.
pub(crate) fn answer(status: u16, content: &str) -> Reply {
    let length = content.len();
    Reply::Bytes(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{content}").into_bytes())
}

/// These bytes.
pub(crate) fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}

type Script = dyn Fn(&str) -> Reply + Send + Sync;

/// An upstream. Dropped, it lets go of what hangs.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    now: Mutex<Record>,
    changed: Condvar,
}

#[derive(Default)]
struct Record {
    requests: Vec<String>,
    under_way: usize,
    most_under_way: usize,
    is_over: bool,
}

impl Upstream {
    /// Does with each request what `script` says of its first line.
    pub(crate) fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (script, told): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if told.now.lock().unwrap().is_over {
                    return;
                }
                let (script, told) = (Arc::clone(&script), Arc::clone(&told));
                std::thread::spawn(move || serve(stream.unwrap(), &*script, &told));
            }
        });
        Self { address, seen }
    }

    /// Every request so far, whole.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.now.lock().unwrap().requests.clone()
    }

    /// How many there were.
    pub(crate) fn count(&self) -> usize {
        self.seen.now.lock().unwrap().requests.len()
    }

    /// The most that were under way at once.
    pub(crate) fn most_under_way(&self) -> usize {
        self.seen.now.lock().unwrap().most_under_way
    }

    /// Waits until so many requests have come.
    pub(crate) fn until(&self, count: usize) {
        let record = self.seen.now.lock().unwrap();
        let waited =
            self.seen.changed.wait_timeout_while(record, BOUND, |record| record.requests.len() < count);
        let (record, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{} of {count} requests", record.requests.len());
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.seen.now.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.seen.changed.notify_all();
        let _wakes_it = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, script: &Script, seen: &Seen) {
    let Some(request) = read(&mut stream) else { return };
    let line = request.lines().next().unwrap_or_default().to_owned();
    {
        let mut record = seen.now.lock().unwrap();
        record.requests.push(request);
        record.under_way += 1;
        record.most_under_way = record.most_under_way.max(record.under_way);
    }
    seen.changed.notify_all();
    let reply = script(&line);
    if let Reply::Hang = reply {
        let record = seen.now.lock().unwrap();
        drop(seen.changed.wait_while(record, |record| !record.is_over).unwrap());
    }
    // Before it is answered: whoever gets the answer may ask again at once.
    seen.now.lock().unwrap().under_way -= 1;
    if let Reply::Bytes(bytes) = reply {
        let _it_may_have_left = stream.write_all(&bytes);
        let _likewise = stream.shutdown(Shutdown::Write);
        // Until the other side closes too: a reset would take the answer with it.
        let _likewise = stream.read_to_end(&mut Vec::new());
    }
}

/// A request with its content, if it has a length.
fn read(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, content)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if content.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
    }
}
