//! The trace that a request belongs to (W3C Trace Context, <https://www.w3.org/TR/trace-context/>).
//!
//! A gateway that sends traces takes part in them: it goes on with the caller's trace if the caller names a valid one, and begins
//! one of its own otherwise. What it sends on has a parent of its own for every call. Without `telemetry.traces` it takes no part,
//! and passes both fields on as they came.

use http::{HeaderMap, HeaderName, HeaderValue, request};

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The flag that says that the caller records its part.
const SAMPLED: u8 = 1;
/// The flag that says that the trace's name is random (level 2). It goes on with the trace.
const RANDOM: u8 = 2;
/// Members of a list, and characters of all of it, that are passed on at least (section 3.3.1.5).
const MEMBERS: usize = 32;
const STATE_BYTES: usize = 512;
/// A member that is longer goes first where something has to.
const LONG_MEMBER_BYTES: usize = 128;

/// A trace, and the span of it that is the parent of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    pub(crate) flags: u8,
}

/// Says of which span a request to somebody else is a part, as an extension of the request on whose behalf it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told(pub(crate) Context);

#[cfg_attr(all(not(feature = "otlp"), not(test)), expect(dead_code, reason = "only traces begin spans"))]
impl Context {
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED == SAMPLED
    }

    /// A trace that begins here.
    pub(crate) fn root(random: [u64; 3], is_sampled: bool) -> Self {
        let [high, low, span] = random;
        let mut trace_id = [0; 16];
        let halves = [high.to_be_bytes(), low.max(1).to_be_bytes()];
        trace_id.copy_from_slice(halves.as_flattened());
        Self { trace_id, span_id: span_id(span), flags: RANDOM | if is_sampled { SAMPLED } else { 0 } }
    }

    /// The same trace, with another span as the parent of what follows.
    pub(crate) fn child(&self, random: u64) -> Self {
        Self { span_id: span_id(random), ..*self }
    }

    /// The trace that a request names, if it names exactly one and that one is valid.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(TRACEPARENT).iter();
        let (first, None) = (lines.next()?, lines.next()) else { return None };
        Self::parse(first.as_bytes())
    }

    /// `version-traceid-parentid-flags`, all of it lower-case hexadecimal. Of a later version what is known of this one is read,
    /// whatever follows.
    fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(55)?;
        let mut fields = known.split(|byte| *byte == b'-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        if fields.next().is_some() {
            return None;
        }
        let [version] = hex(version)?;
        let may_follow = version != 0 && rest.first() == Some(&b'-');
        if version == 0xff || !(rest.is_empty() || may_follow) {
            return None;
        }
        let (trace_id, span_id, [flags]) = (hex::<16>(trace)?, hex::<8>(span)?, hex::<1>(flags)?);
        let is_named = trace_id != [0; 16] && span_id != [0; 8];
        is_named.then_some(Self { trace_id, span_id, flags: flags & (SAMPLED | RANDOM) })
    }

    /// As it is written, always in version 00.
    pub(crate) fn value(&self) -> HeaderValue {
        let text = format!("00-{}-{}-{:02x}", self.trace(), written(&self.span_id), self.flags);
        // Hexadecimal and hyphens are visible ASCII.
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }

    /// The trace's name.
    pub(crate) fn trace(&self) -> String {
        written(&self.trace_id)
    }
}

/// Makes a request that is sent on a part of the span that it was told of, if it was.
pub(crate) fn take_part(head: &mut request::Parts) {
    if let Some(&Told(own)) = head.extensions.get() {
        let goes_on = Context::of(&head.headers).is_some_and(|caller| caller.trace_id == own.trace_id);
        tell(&mut head.headers, &own, goes_on);
    }
}

/// Makes the fields say that what follows is a part of `context`. `goes_on`: whether that is the trace that they named before; of
/// another one what they say besides does not hold.
pub(super) fn tell(headers: &mut HeaderMap, context: &Context, goes_on: bool) {
    headers.insert(TRACEPARENT, context.value());
    if goes_on { cut_state(headers) } else { while headers.remove(TRACESTATE).is_some() {} }
}

/// Joins the lines of `tracestate`, and takes members out of it where it is longer than has to be passed on: whole ones, the long
/// ones first, then those at the end.
fn cut_state(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> = headers.get_all(TRACESTATE).iter().map(HeaderValue::as_bytes).collect();
    let joined = lines.join(&b","[..]);
    if lines.is_empty() || (lines.len() == 1 && joined.len() <= STATE_BYTES) {
        return;
    }
    let members =
        joined.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty());
    let mut members: Vec<&[u8]> = members.take(MEMBERS).collect();
    let bytes =
        |members: &[&[u8]]| members.iter().map(|member| member.len() + 1).sum::<usize>().saturating_sub(1);
    while bytes(&members) > STATE_BYTES {
        let long = members.iter().rposition(|member| member.len() > LONG_MEMBER_BYTES);
        members.remove(long.unwrap_or(members.len() - 1));
    }
    match HeaderValue::from_bytes(&members.join(&b","[..])) {
        Ok(state) if !members.is_empty() => {
            headers.insert(TRACESTATE, state);
        }
        _ => {
            headers.remove(TRACESTATE);
        }
    }
}

/// Not all zero, which names nothing.
fn span_id(random: u64) -> [u8; 8] {
    random.max(1).to_be_bytes()
}

fn hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    if text.len() != 2 * BYTES {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn written(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| DIGITS.get(usize::from(digit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(parents: &[&str], states: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        parents.iter().for_each(|value| _ = headers.append(TRACEPARENT, value.parse().unwrap()));
        states.iter().for_each(|value| _ = headers.append(TRACESTATE, value.parse().unwrap()));
        headers
    }

    /// Section 3.2.2 of the recommendation, by hand.
    #[test]
    fn only_a_valid_traceparent_is_gone_on_with() {
        let context = Context::of(&headers(&[VALID], &[])).unwrap();
        assert_eq!(context.trace(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(
            (context.span_id, context.is_sampled()),
            ([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31], true)
        );
        assert_eq!(context.value(), VALID);
        let later = [
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-brings",
        ];
        for later in later {
            assert_eq!(Context::of(&headers(&[later], &[])), Some(context), "{later}");
        }
        let invalid = [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            " 0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ];
        for invalid in invalid {
            assert_eq!(Context::of(&headers(&[invalid], &[])), None, "{invalid}");
        }
        assert_eq!(Context::of(&headers(&[VALID, VALID], &[])), None, "two are none");
        assert_eq!(Context::of(&headers(&[], &["a=1"])), None);
    }

    /// Only these two flags are known; what a later version may mean by others is not passed on (section 3.2.2.5).
    #[test]
    fn unknown_flags_are_not_passed_on() {
        let context = Context::of(&headers(&[&VALID.replace("-01", "-ff")], &[])).unwrap();
        assert_eq!(context.flags, 3);
        let unsampled = Context::of(&headers(&[&VALID.replace("-01", "-02")], &[])).unwrap();
        assert!(!unsampled.is_sampled());
        assert!(unsampled.value().to_str().unwrap().ends_with("-02"));
    }

    #[test]
    fn a_child_is_of_the_same_trace_and_has_a_name_of_its_own() {
        let parent = Context::of(&headers(&[VALID], &[])).unwrap();
        let child = parent.child(7);
        assert_eq!((child.trace_id, child.flags), (parent.trace_id, parent.flags));
        assert_eq!(child.span_id, [0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(parent.child(0).span_id[7], 1, "all zero names nothing");
        let root = Context::root([0, 0, 0], true);
        assert!(root.is_sampled() && root.trace_id != [0; 16] && root.span_id != [0; 8]);
        assert_eq!(Context::of(&headers(&[root.value().to_str().unwrap()], &[])), Some(root));
    }

    #[test]
    fn state_goes_on_with_its_trace_alone() {
        let parent = Context::of(&headers(&[VALID], &[])).unwrap();
        let mut going_on = headers(&[VALID], &["a=1", "b=2, c=3"]);
        tell(&mut going_on, &parent.child(9), true);
        assert_eq!(going_on[TRACESTATE], "a=1,b=2,c=3", "lines are one list (RFC 9110 section 5.3)");
        assert_eq!(going_on[TRACEPARENT], "00-0af7651916cd43dd8448eb211c80319c-0000000000000009-01");
        let mut anew = headers(&["nonsense"], &["a=1", "b=2"]);
        tell(&mut anew, &Context::root([1, 2, 3], false), false);
        assert!(!anew.contains_key(TRACESTATE));
    }

    /// 512 characters go on as they are; of more, members of over 128 go first, then those at the end.
    #[test]
    fn whole_members_go_where_a_state_is_too_long() {
        let cut = |state: &str| {
            let mut headers = headers(&[], &[state]);
            cut_state(&mut headers);
            headers.get(TRACESTATE).map(|state| state.to_str().unwrap().to_owned())
        };
        let member = |name: char, bytes: usize| format!("{name}={}", "x".repeat(bytes - 2));
        let full = [member('a', 255), member('b', 256)].join(",");
        assert_eq!((full.len(), cut(&full).as_deref()), (512, Some(&*full)));
        let long = [member('a', 128), member('b', 129), member('c', 128), member('d', 128)].join(",");
        assert_eq!(cut(&long), Some([member('a', 128), member('c', 128), member('d', 128)].join(",")));
        let many = "abcde".chars().map(|name| member(name, 128)).collect::<Vec<_>>().join(",");
        assert_eq!(
            cut(&many),
            Some("abc".chars().map(|name| member(name, 128)).collect::<Vec<_>>().join(","))
        );
        assert_eq!(cut(&member('a', 600)), None);
    }
}
