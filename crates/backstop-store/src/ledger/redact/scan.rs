//! Finds values in JSON text (RFC 8259) without changing anything else in it: numbers keep their digits, and names that come
//! twice are both found.

use std::ops::Range;

/// How deep arrays and objects may lie within each other.
const DEPTH: usize = 64;

/// The places of the values at these pointers, in order and apart; `None` if the text is not exactly one JSON value.
pub(super) fn places(text: &[u8], pointers: &[Vec<Box<str>>]) -> Option<Vec<Range<usize>>> {
    std::str::from_utf8(text).ok()?;
    let mut scan = Scan { text, at: 0, places: Vec::new() };
    let pointers: Vec<&[Box<str>]> = pointers.iter().map(Vec::as_slice).collect();
    scan.value(&pointers, DEPTH)?;
    (scan.at == text.len()).then_some(scan.places)
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    places: Vec<Range<usize>>,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    /// A value with the space around it. `pointers`: what is left of those that lead here.
    fn value(&mut self, pointers: &[&[Box<str>]], depth: usize) -> Option<()> {
        self.space();
        let start = self.at;
        let is_meant = pointers.iter().any(|pointer| pointer.is_empty());
        let below: &[&[Box<str>]] = if is_meant { &[] } else { pointers };
        match self.peek()? {
            b'{' => self.object(below, depth.checked_sub(1)?)?,
            b'[' => self.array(below, depth.checked_sub(1)?)?,
            b'"' => self.string().map(|_| ())?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => self.number()?,
        }
        if is_meant {
            self.places.push(start..self.at);
        }
        self.space();
        Some(())
    }

    fn object(&mut self, pointers: &[&[Box<str>]], depth: usize) -> Option<()> {
        self.take(b'{')?;
        self.space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            self.take(b':')?;
            self.value(&step(pointers, &name), depth)?;
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }

    fn array(&mut self, pointers: &[&[Box<str>]], depth: usize) -> Option<()> {
        self.take(b'[')?;
        self.space();
        if self.take(b']').is_some() {
            return Some(());
        }
        for number in 0_usize.. {
            let below = if pointers.is_empty() { Vec::new() } else { step(pointers, &number.to_string()) };
            self.value(&below, depth)?;
            if self.take(b',').is_none() {
                break;
            }
        }
        self.take(b']')
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let is_there = self.text.get(self.at..)?.starts_with(word);
        is_there.then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        if self.take(b'0').is_none() {
            self.digits()?;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if self.take(b'e').or_else(|| self.take(b'E')).is_some() {
            let _ = self.take(b'+').or_else(|| self.take(b'-'));
            self.digits()?;
        }
        Some(())
    }

    /// A string, as what it stands for.
    fn string(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut text = Vec::new();
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(text).ok(),
                b'\\' => {
                    let mut utf8 = [0; 4];
                    text.extend_from_slice(self.escape()?.encode_utf8(&mut utf8).as_bytes());
                }
                0..0x20 => return None,
                byte => text.push(byte),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unit().and_then(|unit| self.character(unit)),
            _ => return None,
        };
        Some(char::from(plain))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        is_hex.then(|| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())?
    }

    /// A pair of surrogates is one character; one alone is none, and matches no name.
    fn character(&mut self, unit: u32) -> Option<char> {
        if !(0xd800..0xdc00).contains(&unit) {
            return Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        if self.word(b"\\u").is_some()
            && let Some(low @ 0xdc00..0xe000) = self.unit()
        {
            return char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
        }
        self.at = before;
        Some(char::REPLACEMENT_CHARACTER)
    }
}

/// The pointers that go on with this name, without it.
fn step<'p>(pointers: &[&'p [Box<str>]], name: &str) -> Vec<&'p [Box<str>]> {
    let led = pointers.iter().filter_map(|pointer| {
        let (first, rest) = pointer.split_first()?;
        (&**first == name).then_some(rest)
    });
    led.collect()
}
