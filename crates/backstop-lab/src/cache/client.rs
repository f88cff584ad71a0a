//! One command on a connection of its own.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::resp::number;

/// Longest reply that is read, in bytes.
const REPLY_MAX: usize = 4 * 1024 * 1024;

/// Sends one command and reads its reply: a value, `None` where there is none, or the words of a simple reply. How long that may
/// take is the caller's matter.
///
/// # Errors
///
/// When there is no connection, no whole reply, or an error in its place.
pub async fn ask(cache: SocketAddr, command: &[&[u8]]) -> io::Result<Option<Vec<u8>>> {
    let mut stream = TcpStream::connect(cache).await?;
    stream.set_nodelay(true)?;
    let mut sent = format!("*{}\r\n", command.len()).into_bytes();
    for part in command {
        sent.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        sent.extend_from_slice(part);
        sent.extend_from_slice(b"\r\n");
    }
    stream.write_all(&sent).await?;
    let mut received = Vec::new();
    loop {
        if let Some(reply) = reply(&received)? {
            return Ok(reply);
        }
        if stream.read_buf(&mut received).await? == 0 || received.len() > REPLY_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The reply, once it is whole.
fn reply(received: &[u8]) -> io::Result<Option<Option<Vec<u8>>>> {
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "no reply of a cache");
    match received.first() {
        None => Ok(None),
        Some(b'$') if received.starts_with(b"$-1\r\n") => Ok(Some(None)),
        Some(b'$') if b"$-1\r\n".starts_with(received) => Ok(None),
        Some(b'$') => {
            let mut rest = received;
            let Some(length) = number(&mut rest, b'$', REPLY_MAX).map_err(|_| foreign())? else {
                return Ok(None);
            };
            Ok((rest.len() >= length + 2).then(|| rest.get(..length).map(<[u8]>::to_vec)))
        }
        Some(b'+' | b':') => Ok(received.strip_suffix(b"\r\n").map(|line| line.get(1..).map(<[u8]>::to_vec))),
        Some(_) if received.ends_with(b"\r\n") => Err(foreign()),
        Some(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::reply;

    #[test]
    fn a_reply_is_whole_or_waited_for() {
        let value = |text: &str| Some(Some(text.as_bytes().to_vec()));
        for (received, read) in [
            ("", None),
            ("$", None),
            ("$-", None),
            ("$-1\r", None),
            ("$-1\r\n", Some(None)),
            ("$3\r\nab", None),
            ("$3\r\nabc\r", None),
            ("$3\r\nabc\r\n", value("abc")),
            ("+O", None),
            ("+OK\r\n", value("OK")),
            (":12\r\n", value("12")),
        ] {
            assert_eq!(reply(received.as_bytes()).unwrap(), read, "{received:?}");
        }
        assert!(reply(b"-ERR no\r\n").is_err());
    }
}
