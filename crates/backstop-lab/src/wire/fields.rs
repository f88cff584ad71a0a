//! Header and trailer fields as they were received: order, case and repetition are kept.

use serde::Serialize;

/// One field line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The name, in the case it was sent in.
    pub name: String,
    /// The value without the blanks around it. Bytes that are not UTF-8 become U+FFFD; the raw head has them.
    pub value: String,
}

/// The field lines of one head or one trailer section, in the order received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fields(Vec<Field>);

impl Fields {
    /// Adds a line at the end.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        self.0.push(Field { name: name.to_owned(), value });
    }

    /// The value of the first line with this name, compared without case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.as_str())
    }

    /// The values of every line with this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value.as_str())
    }

    /// How many lines have this name.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.all(name).count()
    }

    /// Whether one of the comma-separated members of the lines with this name is `member`, without case.
    #[must_use]
    pub fn lists(&self, name: &str, member: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(member))
    }

    /// Every line, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.0.iter()
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn order_case_and_repetition_are_kept() {
        let mut fields = Fields::default();
        fields.push("Via", b"1.1 a");
        fields.push("ETag", b"\"e1\"");
        fields.push("via", b"1.1 b, 1.1 c");
        assert_eq!(fields.get("VIA"), Some("1.1 a"));
        assert_eq!(fields.all("via").collect::<Vec<_>>(), ["1.1 a", "1.1 b, 1.1 c"]);
        assert_eq!(
            fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
            ["Via", "ETag", "via"]
        );
        assert!(fields.lists("Via", "1.1 C"));
        assert!(!fields.lists("Via", "1.1"));
    }
}
