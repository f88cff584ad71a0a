//! Lists, one-or-many values, and maps by name.

use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context, Node, Shape, Value};
use crate::value::Name;

/// A list; the entries that could be read.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<At<T>>);

/// One value or a list of at least one.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<At<T>>);

/// Values by key, in the order of the file; `K` reads itself from the key.
#[derive(Clone, Debug)]
pub(crate) struct Named<T, K = Name> {
    /// The entries that could be read.
    pub(crate) entries: Vec<(At<K>, At<T>)>,
    /// Every key, those included whose entry could not be read.
    pub(crate) names: Vec<Box<str>>,
}

fn one<T: Value>(node: Node<'_>, cx: &mut Context<'_>) -> Option<At<T>> {
    let value = T::read(node, cx)?;
    let origin = cx.origin(node.path, node.bytes());
    Some(At { value, bytes: node.bytes(), origin })
}

fn entries<T: Value>(node: Node<'_>, cx: &mut Context<'_>) -> Option<Vec<At<T>>> {
    let DeValue::Array(array) = node.get() else { return None };
    let mut entries = Vec::with_capacity(array.len());
    for (index, value) in array.iter().enumerate() {
        let path = format!("{}[{index}]", node.path);
        entries.extend(one(Node { path: &path, value }, cx));
    }
    Some(entries)
}

impl<T: Value> Value for List<T> {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let read = entries(node, cx);
        if read.is_none() {
            cx.report(node.wrong_type("a list").help("put square brackets around it"));
        }
        read.map(List)
    }

    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }
}

impl<T: Value> Value for OneOrMany<T> {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let DeValue::Array(array) = node.get() else { return one(node, cx).map(|one| OneOrMany(vec![one])) };
        if array.is_empty() {
            let message = format!("`{}` is an empty list", node.path);
            cx.report(
                Finding::new(Code::Empty, node.bytes(), message)
                    .help("name at least one, or leave the key out"),
            );
            return None;
        }
        entries(node, cx).map(OneOrMany)
    }

    fn shape() -> Shape {
        Shape::OneOrMany(Box::new(T::shape()))
    }
}

/// A string that may be a key of a [`Named`] map.
pub(crate) trait MapKey: Value {
    /// What the keys are called in the reference: `NAME`.
    const PLACEHOLDER: &'static str;
}

impl<T: Value, K: MapKey> Value for Named<T, K> {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let DeValue::Table(table) = node.get() else {
            cx.report(node.wrong_type("a table"));
            return None;
        };
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let mut entries = Vec::with_capacity(keys.len());
        let mut names = Vec::with_capacity(keys.len());
        for (key, value) in keys {
            names.push(key.get_ref().as_ref().into());
            let path = format!("{}.{}", node.path, key.get_ref());
            let as_text = toml::Spanned::new(key.span(), DeValue::String(key.get_ref().clone()));
            let name = one(Node { path: &path, value: &as_text }, cx);
            let entry = T::read(Node { path: &path, value }, cx);
            if let (Some(name), Some(entry)) = (name, entry) {
                let bytes = key.span().start..value.span().end.max(key.span().end);
                let origin = cx.origin(&path, bytes);
                entries.push((name, At { value: entry, bytes: value.span(), origin }));
            }
        }
        Some(Named { entries, names })
    }

    fn shape() -> Shape {
        Shape::Map { placeholder: K::PLACEHOLDER, value: Box::new(T::shape()) }
    }
}
