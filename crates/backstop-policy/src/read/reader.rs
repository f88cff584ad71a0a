//! Reads one table key by key and reports what is left over.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context, Need, Node, Value};
use crate::suggest;

/// Reads one table.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    path: &'a str,
    /// Where the table begins: its header, or all of an inline table.
    header: Range<usize>,
    table: &'a DeTable<'a>,
    known: Vec<&'static str>,
    later: Vec<(&'static str, &'static str)>,
    moved: Vec<(&'static str, &'static str)>,
    elsewhere: fn(&str) -> Option<Elsewhere>,
}

/// Where else a key would be known.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// Such as ``the class `public_read` ``.
    pub(crate) place: String,
    /// Why it is not known here, if that is more than "not its kind".
    pub(crate) why: Option<&'static str>,
}

impl<'a> Reader<'a> {
    /// Begins with the table at this node; anything but a table is reported.
    pub(crate) fn open(node: Node<'a>, cx: &mut Context<'_>) -> Option<Self> {
        let DeValue::Table(table) = node.get() else {
            cx.report(node.wrong_type("a table"));
            return None;
        };
        Some(Self {
            path: node.path,
            header: node.bytes(),
            table,
            known: Vec::new(),
            later: Vec::new(),
            moved: Vec::new(),
            elsewhere: |_| None,
        })
    }

    /// Reads the value of a key.
    pub(crate) fn field<T: Value>(
        &mut self,
        key: &'static str,
        need: Need,
        cx: &mut Context<'_>,
    ) -> Option<At<T>> {
        self.known.push(key);
        let Some((name, value)) = self.table.get_key_value(key) else {
            self.report_missing(key, need, cx);
            return None;
        };
        let path = self.join(key);
        let Some(read) = T::read(Node { path: &path, value }, cx) else {
            cx.set_unreadable(path);
            return None;
        };
        let origin = cx.origin(&path, name.span().start..value.span().end.max(name.span().end));
        Some(At { value: read, bytes: value.span(), origin })
    }

    /// Names keys that are read elsewhere.
    pub(crate) fn known(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    /// Names keys that are known but not available in this version, with what each would give.
    pub(crate) fn later(&mut self, keys: &[(&'static str, &'static str)]) {
        self.later.extend_from_slice(keys);
    }

    /// Names keys that stand elsewhere, with what to write instead.
    pub(crate) fn moved(&mut self, keys: &[(&'static str, &'static str)]) {
        self.moved.extend_from_slice(keys);
    }

    /// Names where else a key would be known, for the message about a misplaced one.
    pub(crate) fn elsewhere(&mut self, elsewhere: fn(&str) -> Option<Elsewhere>) {
        self.elsewhere = elsewhere;
    }

    /// Reports every key that was not asked for.
    pub(crate) fn finish(self, cx: &mut Context<'_>) {
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.retain(|key| !self.known.contains(&key.get_ref().as_ref()));
        // The first findings by place are those that are told.
        keys.sort_unstable_by_key(|key| key.span().start);
        for key in keys {
            let name = key.get_ref().as_ref();
            if let Some((_, what)) = self.later.iter().find(|(later, _)| *later == name) {
                cx.report(not_available(key.span(), what));
            } else if let Some(Elsewhere { place, why }) = (self.elsewhere)(name) {
                let remove = format!("remove it, or change the class of `{}`", self.path);
                let help = why.map_or(remove.clone(), |why| format!("{remove}: {why}"));
                let message = format!("`{name}` belongs to {place}");
                cx.report(Finding::new(Code::OtherClass, key.span(), message).help(help));
            } else {
                cx.report(self.unknown(name, key.span(), cx.has_room()));
            }
        }
    }

    fn unknown(&self, name: &str, bytes: Range<usize>, has_room: bool) -> Finding {
        let finding =
            Finding::new(Code::UnknownKey, bytes.clone(), format!("unknown key `{}`", self.join(name)));
        if let Some((_, instead)) = self.moved.iter().find(|(moved, _)| *moved == name) {
            return finding.help(*instead);
        }
        if !has_room {
            return finding;
        }
        match suggest::closest(name, self.known.iter().copied()) {
            Some(close) => finding.help(format!("did you mean `{close}`?")).fix(bytes, close),
            None => finding.help(format!("known here: {}", suggest::listed(self.known.iter().copied()))),
        }
    }

    fn report_missing(&self, key: &'static str, need: Need, cx: &mut Context<'_>) {
        let path = self.join(key);
        match need {
            Need::Default(_) => {}
            Need::Required => {
                let message = format!("`{path}` is missing");
                cx.report(
                    Finding::new(Code::MissingKey, self.header.clone(), message)
                        .label(format!("add `{key}` here")),
                );
            }
            Need::Contract => {
                let message = format!("`{path}` is missing and has no default");
                cx.report(
                    Finding::new(Code::MissingContract, self.header.clone(), message)
                        .label(format!("add `{key}` here"))
                        .help("it is your promise to clients and to the dependency: only you can state it"),
                );
            }
        }
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// The finding for something that is known but not available.
pub(crate) fn not_available(bytes: Range<usize>, what: &str) -> Finding {
    Finding::new(Code::NotAvailable, bytes, format!("{what}: not available in this version"))
        .help("remove it; a rule that cannot be kept is never ignored silently")
}
