//! Where each part stands in the whole, and the whole's text.

use backstop_engine::composed::Part;

use crate::json::{bare, unescaped};

/// More steps than any page has; what is nested deeper is refused by most parsers.
const MOST_STEPS: usize = 32;

/// An object whose members are parts or further objects, in the policy's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Object {
    members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    name: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Part(usize),
    Object(Object),
}

/// A part that can stand nowhere: its `at` is no JSON Pointer of an object's member, or another part stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no part can stand at `{0}`: it must be a JSON Pointer of at most 32 steps, and no part may stand within another"
)]
pub struct NotAPlace(pub Box<str>);

impl Object {
    /// The object of these parts.
    pub(crate) fn new(parts: &[Part]) -> Result<Self, NotAPlace> {
        let mut whole = Self::default();
        for (number, part) in parts.iter().enumerate() {
            let wrong = || NotAPlace(part.at.clone());
            let steps = part.at.strip_prefix('/').ok_or_else(wrong)?;
            let steps: Option<Vec<_>> = steps.split('/').map(unescaped).collect();
            let steps = steps.filter(|steps| steps.len() <= MOST_STEPS).ok_or_else(wrong)?;
            let (last, parents) = steps.split_last().ok_or_else(wrong)?;
            let mut object = &mut whole;
            for step in parents {
                object = object.inner(step).ok_or_else(wrong)?;
            }
            if object.members.iter().any(|member| member.name == **last) {
                return Err(wrong());
            }
            object.members.push(Member { name: last.to_string(), value: Value::Part(number) });
        }
        Ok(whole)
    }

    /// The object under this name; `None` if a part stands there.
    fn inner(&mut self, name: &str) -> Option<&mut Object> {
        let known = self.members.iter().position(|member| member.name == name);
        let index = known.unwrap_or(self.members.len());
        if known.is_none() {
            self.members.push(Member { name: name.to_owned(), value: Value::Object(Object::default()) });
        }
        match &mut self.members.get_mut(index)?.value {
            Value::Object(object) => Some(object),
            Value::Part(_) => None,
        }
    }

    /// Its text, with these values in the places of the parts; one that is `None` is left out. Objects stay, also empty ones.
    pub(crate) fn text<'v>(&self, value: &impl Fn(usize) -> Option<&'v [u8]>) -> Vec<u8> {
        let mut text = Vec::new();
        self.write(value, &mut text);
        text
    }

    fn write<'v>(&self, value: &impl Fn(usize) -> Option<&'v [u8]>, text: &mut Vec<u8>) {
        text.push(b'{');
        let mut is_first = true;
        for member in &self.members {
            let part = match &member.value {
                Value::Part(number) => match value(*number) {
                    Some(part) => Some(part),
                    None => continue,
                },
                Value::Object(_) => None,
            };
            if !std::mem::replace(&mut is_first, false) {
                text.push(b',');
            }
            text.extend_from_slice(serde_json::Value::from(member.name.as_str()).to_string().as_bytes());
            text.push(b':');
            match (part, &member.value) {
                (Some(part), _) => text.extend_from_slice(bare(part)),
                (None, Value::Object(object)) => object.write(value, text),
                (None, Value::Part(_)) => {}
            }
        }
        text.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::policy::{Origin, RouteId};

    fn object(places: &[&str]) -> Result<Object, NotAPlace> {
        let part =
            |at: &&str| Part { route: RouteId(0), at: (*at).into(), required: false, origin: Origin::NONE };
        Object::new(&places.iter().map(part).collect::<Vec<_>>())
    }

    fn text(places: &[&str], values: &[Option<&'static str>]) -> String {
        let text = object(places).unwrap().text(&|number| values[number].map(str::as_bytes));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn values_stand_in_their_places_as_they_came() {
        let places = ["/product", "/recommendations"];
        let both = text(&places, &[Some(" {\"id\": 1}\n"), Some("[1e999,\"\\u00e9\"]")]);
        assert_eq!(both, r#"{"product":{"id": 1},"recommendations":[1e999,"\u00e9"]}"#);
        assert_eq!(text(&places, &[Some("1"), None]), r#"{"product":1}"#);
        assert_eq!(text(&places, &[None, Some("\u{feff}2")]), r#"{"recommendations":2}"#);
        assert_eq!(text(&places, &[None, None]), "{}");
    }

    /// RFC 6901 section 3: `~1` is a slash, `~0` a tilde, and an empty step an empty name.
    #[test]
    fn names_are_unescaped_and_nested() {
        let places = ["/a/b", "/c", "/a/d~1e~0f", "/", "/a/g/h", "/\"q"];
        let values = [Some("1"), Some("2"), Some("3"), Some("4"), Some("5"), Some("6")];
        assert_eq!(text(&places, &values), r#"{"a":{"b":1,"d/e~f":3,"g":{"h":5}},"c":2,"":4,"\"q":6}"#);
        assert_eq!(text(&places, &[None; 6]), r#"{"a":{"g":{}}}"#);
    }

    #[test]
    fn no_part_stands_within_another() {
        for places in [
            &["/a", "/a"][..],
            &["/a", "/a/b"],
            &["/a/b", "/a"],
            &["/a/b/c", "/a/b"],
            &[""],
            &["a"],
            &["/~2"],
            &["/~"],
        ] {
            assert_eq!(object(places), Err(NotAPlace((*places.last().unwrap()).into())), "{places:?}");
        }
        assert!(object(&[&"/a".repeat(32)]).is_ok());
        assert!(object(&[&"/a".repeat(33)]).is_err());
        assert!(object(&["/a/b", "/a/c", "/ab"]).is_ok());
    }
}
