//! The head of an answer, parsed without any leniency.

use bytes::Bytes;

use crate::wire::{Fields, content_length};

use super::{ResponseFraming, response::framing_allowed};

/// Status line and header lines of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Every byte, final empty line included.
    pub raw: Bytes,
    /// The minor version: 1 for HTTP/1.1.
    pub minor_version: u8,
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The header lines, in order.
    pub fields: Fields,
}

impl ResponseHead {
    /// Parses `raw`, which ends with its empty line.
    pub(crate) fn parse(raw: Bytes) -> Result<Self, &'static str> {
        let text = raw.strip_suffix(b"\r\n\r\n").ok_or("no empty line at the end")?;
        let mut lines = split_lines(text);
        let (minor_version, status, reason) = status_line(lines.next().unwrap_or_default())?;
        let mut fields = Fields::default();
        for line in lines {
            field(line, &mut fields)?;
        }
        Ok(Self { raw, minor_version, status, reason, fields })
    }

    /// As whoever passes an answer on has to read it: where no body may be there is none, whatever its fields say (RFC 9112
    /// section 6.3). Many servers send `Content-Length: 0` with a 204.
    pub(crate) fn framing_to_pass_on(&self, method: &str) -> Result<ResponseFraming, &'static str> {
        let has_none = method == "HEAD" || !framing_allowed(self.status);
        if has_none { Ok(ResponseFraming::None) } else { self.framing(method) }
    }

    /// How the body of this answer to a request with `method` ends.
    pub(crate) fn framing(&self, method: &str) -> Result<ResponseFraming, &'static str> {
        let lengths = self.fields.count("content-length");
        let codings = self.fields.count("transfer-encoding");
        if lengths > 1 || codings > 1 || (lengths > 0 && codings > 0) {
            return Err("more than one framing");
        }
        if !framing_allowed(self.status) && (codings > 0 || (lengths > 0 && self.status != 304)) {
            return Err("a framing field where no body may be");
        }
        let declared = match self.fields.get("content-length") {
            Some(value) => Some(content_length(value).ok_or("Content-Length is not a number")?),
            None => None,
        };
        if self.fields.get("transfer-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("chunked"))
        {
            return Err("a transfer coding other than chunked");
        }
        Ok(if method == "HEAD" || !framing_allowed(self.status) {
            ResponseFraming::None
        } else if codings > 0 {
            ResponseFraming::Chunked
        } else {
            declared.map_or(ResponseFraming::CloseDelimited, ResponseFraming::ContentLength)
        })
    }
}

fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Line ends were checked: every LF has its CR.
    text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn status_line(line: &[u8]) -> Result<(u8, u16, String), &'static str> {
    let rest = line.strip_prefix(b"HTTP/1.").ok_or("the status line is not HTTP/1.x")?;
    let [minor @ (b'0' | b'1'), b' ', a, b, c, reason @ ..] = rest else {
        return Err("the status line is malformed");
    };
    let digits = [*a, *b, *c];
    if !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
        return Err("the status is not three digits");
    }
    let reason = match reason {
        [] => "".into(),
        [b' ', reason @ ..] => String::from_utf8_lossy(reason).into_owned(),
        _ => return Err("the status is not three digits"),
    };
    let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    Ok((minor - b'0', status, reason))
}

fn field(line: &[u8], fields: &mut Fields) -> Result<(), &'static str> {
    let colon = line.iter().position(|&byte| byte == b':').ok_or("a header line without a colon")?;
    let name = &line[..colon];
    if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
        return Err("a header name is not a token");
    }
    let value = line[colon + 1..].trim_ascii();
    if value.iter().any(|&byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
        return Err("a control byte in a header value");
    }
    fields.push(&String::from_utf8_lossy(name), value);
    Ok(())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::ResponseHead;
    use crate::client::ResponseFraming;

    fn head(text: &str) -> Result<ResponseHead, &'static str> {
        ResponseHead::parse(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn an_exact_head_is_read() {
        let head = head("HTTP/1.1 404 Not Found\r\nA: 1\r\na:  2 \r\n\r\n").unwrap();
        assert_eq!((head.minor_version, head.status, head.reason.as_str()), (1, 404, "Not Found"));
        assert_eq!(head.fields.all("A").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(head.framing("GET").unwrap(), ResponseFraming::CloseDelimited);
        assert_eq!(head.framing("HEAD").unwrap(), ResponseFraming::None);
    }

    #[test]
    fn loose_heads_are_refused() {
        for wrong in [
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: \u{1}\r\n\r\n",
        ] {
            assert!(head(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn two_framings_are_refused() {
        for wrong in [
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert!(head(wrong).unwrap().framing("GET").is_err(), "{wrong:?}");
        }
    }
}
