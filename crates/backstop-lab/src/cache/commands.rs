//! What the cache holds, and what it replies.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Most values that it holds.
pub const KEYS_MAX: usize = 10_000;

/// Values with the moment at which they are over.
#[derive(Debug, Default)]
pub(super) struct Values(HashMap<Vec<u8>, (Vec<u8>, Option<Instant>)>);

impl Values {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The reply to one command.
    pub(super) fn reply(&mut self, command: &[Vec<u8>]) -> Vec<u8> {
        self.reply_at(command, Instant::now())
    }

    fn reply_at(&mut self, command: &[Vec<u8>], now: Instant) -> Vec<u8> {
        let parts: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let Some((name, arguments)) = parts.split_first() else { return error("ERR empty command") };
        match (name.to_ascii_uppercase().as_slice(), arguments) {
            (b"PING", []) => b"+PONG\r\n".to_vec(),
            (b"SELECT" | b"CLIENT", [_, ..]) => b"+OK\r\n".to_vec(),
            (b"GET", [key]) => self.get(key, now).map_or_else(|| b"$-1\r\n".to_vec(), bulk),
            (b"GETRANGE", [key, from, to]) => match (whole(from), whole(to)) {
                (Some(from), Some(to)) => {
                    let value = self.get(key, now).unwrap_or_default();
                    let end = value.len().min(to.saturating_add(1));
                    bulk(value.get(from..end).unwrap_or_default())
                }
                _ => error("ERR value is not an integer or out of range"),
            },
            (b"SET", [key, value]) => self.set(key, value, None, now),
            (b"SET", [key, value, unit, time]) => {
                let time = whole(time).and_then(|time| u64::try_from(time).ok());
                let lasts = match (unit.to_ascii_uppercase().as_slice(), time) {
                    (b"PX", Some(millis @ 1..)) => Duration::from_millis(millis),
                    (b"EX", Some(seconds @ 1..)) => Duration::from_secs(seconds),
                    _ => return error("ERR syntax error"),
                };
                self.set(key, value, Some(lasts), now)
            }
            (b"DEL", keys @ [_, ..]) => {
                let removed = keys.iter().filter(|key| {
                    let is_there = self.get(key, now).is_some();
                    self.0.remove(**key);
                    is_there
                });
                format!(":{}\r\n", removed.count()).into_bytes()
            }
            _ => error(&format!("ERR unknown command '{}'", String::from_utf8_lossy(name))),
        }
    }

    fn get(&self, key: &[u8], now: Instant) -> Option<&[u8]> {
        let (value, until) = self.0.get(key)?;
        until.is_none_or(|until| now < until).then_some(value)
    }

    fn set(&mut self, key: &[u8], value: &[u8], lasts: Option<Duration>, now: Instant) -> Vec<u8> {
        if self.0.len() >= KEYS_MAX && !self.0.contains_key(key) {
            self.0.retain(|_, (_, until)| until.is_none_or(|until| now < until));
            if self.0.len() >= KEYS_MAX {
                return error("OOM command not allowed when used memory > 'maxmemory'.");
            }
        }
        // A time beyond what can be counted is as good as none.
        let until = lasts.and_then(|lasts| now.checked_add(lasts));
        self.0.insert(key.to_vec(), (value.to_vec(), until));
        b"+OK\r\n".to_vec()
    }
}

fn bulk(value: &[u8]) -> Vec<u8> {
    let mut reply = format!("${}\r\n", value.len()).into_bytes();
    reply.extend_from_slice(value);
    reply.extend_from_slice(b"\r\n");
    reply
}

fn error(text: &str) -> Vec<u8> {
    format!("-{text}\r\n").into_bytes()
}

fn whole(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(values: &mut Values, line: &str, now: Instant) -> String {
        let command: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        String::from_utf8(values.reply_at(&command, now)).unwrap()
    }

    /// The replies of Redis 7.0 to the same commands.
    #[test]
    fn it_replies_as_redis_does() {
        let (mut values, now) = (Values::default(), Instant::now());
        for (sent, reply) in [
            ("PING", "+PONG\r\n"),
            ("GET k", "$-1\r\n"),
            ("GETRANGE k 0 10", "$0\r\n\r\n"),
            ("set k abcdef px 1000", "+OK\r\n"),
            ("GET k", "$6\r\nabcdef\r\n"),
            ("GETRANGE k 0 2", "$3\r\nabc\r\n"),
            ("GETRANGE k 0 99", "$6\r\nabcdef\r\n"),
            ("GETRANGE k 9 99", "$0\r\n\r\n"),
            ("DEL k other", ":1\r\n"),
            ("DEL k", ":0\r\n"),
            ("SET k v PX 0", "-ERR syntax error\r\n"),
            ("HELLO 3", "-ERR unknown command 'HELLO'\r\n"),
        ] {
            assert_eq!(say(&mut values, sent, now), reply, "{sent}");
        }
    }

    #[test]
    fn a_value_is_over_when_its_time_is() {
        let (mut values, now) = (Values::default(), Instant::now());
        say(&mut values, "SET k v PX 1000", now);
        assert_eq!(say(&mut values, "GET k", now + Duration::from_millis(999)), "$1\r\nv\r\n");
        assert_eq!(say(&mut values, "GET k", now + Duration::from_secs(1)), "$-1\r\n");
        assert_eq!(say(&mut values, "DEL k", now + Duration::from_secs(1)), ":0\r\n");
    }

    #[test]
    fn what_is_over_gives_way_and_nothing_else_does() {
        let (mut values, now) = (Values::default(), Instant::now());
        for key in 0..KEYS_MAX {
            say(&mut values, &format!("SET {key} v EX 1"), now);
        }
        assert!(say(&mut values, "SET more v", now).starts_with("-OOM"));
        assert_eq!(say(&mut values, "SET 7 w", now), "+OK\r\n");
        assert_eq!(say(&mut values, "SET more v", now + Duration::from_secs(1)), "+OK\r\n");
    }
}
