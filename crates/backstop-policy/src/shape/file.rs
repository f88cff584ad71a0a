//! The whole file, and the choice of a route's class.

use std::sync::LazyLock;

use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::Need::{Default, Required};
use crate::read::{At, Context, Elsewhere, Field, Named, Need, Node, Reader, Shape, Table, Value, table};
use crate::shape::{
    AuthorizerTable, CachedReadTable, CheckTable, Common, ComposedRoute, ComposedTable, DependencyTable,
    DirectTable, EffectTable, GatewayTable, GuardedTable, OptionalTable, PublicReadTable, ResourceTable,
    StoreTable, TelemetryTable,
};
use crate::suggest;

table! {
    /// A policy: what a gateway answers while something that it depends on is broken.
    struct File {
        /// The process as a whole.
        "gateway" gateway: GatewayTable = Required;
        /// Where copies and operations are kept.
        "store" store: StoreTable = Default("as its keys say");
        /// What several dependencies share, by name.
        "resource" resource: Named<ResourceTable> = Default("none");
        /// What is called, by name.
        "dependency" dependency: Named<DependencyTable> = Required;
        /// Who says whether a caller may, by name. No dependency has the same name.
        "authorizer" authorizer: Named<AuthorizerTable> = Default("none");
        /// What is answered, by name; below the name, exactly one class: `direct`, `public_read`, `cached_read`, `optional`, `composed`, `guarded` or `effect`.
        "route" route: Named<RouteEntry> = Required;
        /// What is told to others of requests as they go.
        "telemetry" telemetry: TelemetryTable = Default("nothing");
        /// How warnings are treated.
        "check" check: CheckTable = Default("nothing is waived");
    }
    moved {
        "cache" => "a cache is written in the route that asks it, `[route.NAME.cached_read]`: `cache = { url = \"redis://...\", ttl = \"5s\" }`; routes with the same `url` share it";
    }
}

/// A route: its class and that class's table.
#[derive(Clone, Debug)]
pub(crate) struct RouteEntry {
    /// The class's table.
    pub(crate) table: RouteTable,
    /// Where the class's table was written.
    pub(crate) at: At<()>,
}

/// The table of a route's class.
#[derive(Clone, Debug)]
pub(crate) enum RouteTable {
    Direct(Box<DirectTable>),
    PublicRead(Box<PublicReadTable>),
    CachedRead(Box<CachedReadTable>),
    Optional(Box<OptionalTable>),
    Composed(Box<ComposedRoute>),
    Guarded(Box<GuardedTable>),
    Effect(Box<EffectTable>),
}

impl RouteEntry {
    /// What all classes share.
    pub(crate) fn common(&self) -> &Common {
        match &self.table {
            RouteTable::Direct(table) => &table.common,
            RouteTable::PublicRead(table) => &table.kept.common,
            RouteTable::CachedRead(table) => &table.kept.common,
            RouteTable::Optional(table) => &table.common,
            RouteTable::Composed(route) => &route.common,
            RouteTable::Guarded(table) => &table.common,
            RouteTable::Effect(table) => &table.common,
        }
    }
}

const CLASSES: [&str; 7] =
    ["direct", "public_read", "cached_read", "optional", "composed", "guarded", "effect"];

/// Why a key of another class has no place in `direct`.
const NOT_DIRECT: [(&str, &str); 2] = [
    ("retry", "a `direct` route may write, and what is sent twice may be done twice"),
    (
        "alternative",
        "nothing stands in for what a `direct` route answers, and a write sent elsewhere is a second one",
    ),
];

/// Why a key of another class has no place in `effect`.
const NOT_EFFECT: [(&str, &str); 12] = [
    ("retry", SENT_ONCE),
    ("alternative", SENT_ONCE),
    ("fill", NO_COPY),
    ("cache", NO_COPY),
    ("local_copy", NO_COPY),
    ("max_age", NO_COPY),
    ("key", NO_COPY),
    ("gone", NO_COPY),
    ("fallback_in_flight", NO_COPY),
    ("otherwise", NO_COPY),
    ("unavailable_status", NO_COPY),
    ("idle", "what has an effect is held whole, its request and its answer, so that both can be proved"),
];
const SENT_ONCE: &str =
    "an effect is sent once, whatever happens: what is sent again, here or elsewhere, may be a second one";
const NO_COPY: &str = "nothing stands in for an effect: that would be an invented success";

/// Which classes have this key.
fn classes_with(key: &str) -> Option<Elsewhere> {
    elsewhere(key, &NOT_DIRECT)
}

/// The same for an `effect`.
fn classes_with_instead_of_effect(key: &str) -> Option<Elsewhere> {
    elsewhere(key, &NOT_EFFECT)
}

fn elsewhere(key: &str, reasons: &[(&str, &'static str)]) -> Option<Elsewhere> {
    // Made once: a file may hold very many unknown keys.
    static KEYS: LazyLock<[Vec<&str>; 7]> = LazyLock::new(|| {
        [
            DirectTable::fields(),
            PublicReadTable::fields(),
            CachedReadTable::fields(),
            OptionalTable::fields(),
            ComposedTable::fields(),
            GuardedTable::fields(),
            EffectTable::fields(),
        ]
        .map(|fields| fields.iter().map(|field| field.key).collect())
    });
    let classes = CLASSES.into_iter().zip(KEYS.iter().map(|keys| keys.contains(&key)));
    let having: Vec<_> = classes.filter(|(_, has)| *has).map(|(class, _)| class).collect();
    let place = match having.as_slice() {
        [] => return None,
        [one] => format!("the class `{one}`"),
        many => format!("the classes {}", suggest::listed(many.iter().copied())),
    };
    let why = reasons.iter().find(|(name, _)| *name == key).map(|(_, why)| *why);
    Some(Elsewhere { place, why })
}

impl Value for RouteEntry {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let DeValue::Table(table) = node.get() else {
            cx.report(node.wrong_type("a table"));
            return None;
        };
        let mut reader = Reader::open(node, cx)?;
        let given: Vec<_> =
            table.iter().filter(|(key, _)| CLASSES.contains(&key.get_ref().as_ref())).collect();
        if let [(class, value)] = given.as_slice() {
            let path = format!("{}.{}", node.path, class.get_ref());
            let inner = Node { path: &path, value };
            let read = read_class(class.get_ref(), inner, cx);
            let bytes = match value.get_ref() {
                DeValue::Table(_) => value.span(),
                _ => class.span(),
            };
            let origin = cx.origin(&path, bytes.clone());
            reader.known(&CLASSES);
            reader.finish(cx);
            return Some(RouteEntry { table: read?, at: At { value: (), bytes, origin } });
        }
        report_classes(node, &given, cx);
        None
    }

    fn shape() -> Shape {
        let field =
            |key, shape: Shape, about: String| Field { key, about, need: Need::Default("none"), shape };
        Shape::OneOf(vec![
            field(CLASSES[0], DirectTable::table_shape(), DirectTable::about()),
            field(CLASSES[1], PublicReadTable::table_shape(), PublicReadTable::about()),
            field(CLASSES[2], CachedReadTable::table_shape(), CachedReadTable::about()),
            field(CLASSES[3], OptionalTable::table_shape(), OptionalTable::about()),
            field(CLASSES[4], ComposedTable::table_shape(), ComposedTable::about()),
            field(CLASSES[5], GuardedTable::table_shape(), GuardedTable::about()),
            field(CLASSES[6], EffectTable::table_shape(), EffectTable::about()),
        ])
    }
}

fn read_class(class: &str, node: Node<'_>, cx: &mut Context<'_>) -> Option<RouteTable> {
    match class {
        "direct" => DirectTable::read_table(node, classes_with, cx).map(Box::new).map(RouteTable::Direct),
        "public_read" => {
            PublicReadTable::read_table(node, classes_with, cx).map(Box::new).map(RouteTable::PublicRead)
        }
        "cached_read" => {
            CachedReadTable::read_table(node, classes_with, cx).map(Box::new).map(RouteTable::CachedRead)
        }
        "optional" => {
            OptionalTable::read_table(node, classes_with, cx).map(Box::new).map(RouteTable::Optional)
        }
        "effect" => {
            let table = EffectTable::read_table(node, classes_with_instead_of_effect, cx);
            table.map(Box::new).map(RouteTable::Effect)
        }
        "guarded" => GuardedTable::read_table(node, classes_with, cx).map(Box::new).map(RouteTable::Guarded),
        _ => {
            let table = ComposedTable::read_table(node, classes_with, cx);
            table.map(ComposedRoute::from).map(Box::new).map(RouteTable::Composed)
        }
    }
}

type Entry<'a> = (&'a toml::Spanned<std::borrow::Cow<'a, str>>, &'a toml::Spanned<DeValue<'a>>);

/// Reports a route that has no class, or several.
fn report_classes(node: Node<'_>, given: &[Entry<'_>], cx: &mut Context<'_>) {
    let DeValue::Table(table) = node.get() else { return };
    if let [first, rest @ ..] = given
        && !rest.is_empty()
    {
        let message = format!("`{}` has {} classes", node.path, given.len());
        let mut finding = Finding::new(Code::RouteClass, first.1.span(), message)
            .help("keep one of them, or give the other routes names of their own");
        for (key, value) in rest {
            finding = finding.related(value.span(), format!("also `{}` here", key.get_ref()));
        }
        cx.report(finding);
        return;
    }
    let mut explained = false;
    for (key, value) in table.iter() {
        let word = key.get_ref().as_ref();
        if cx.has_room()
            && let (DeValue::Table(_), Some(close)) = (value.get_ref(), suggest::closest(word, CLASSES))
        {
            let finding =
                Finding::new(Code::RouteClass, key.span(), format!("`{word}` is not a route class"));
            cx.report(finding.help(format!("did you mean `{close}`?")).fix(key.span(), close));
            explained = true;
        }
    }
    if !explained {
        let message = format!("`{}` names no class", node.path);
        cx.report(Finding::new(Code::RouteClass, node.bytes(), message).help(format!(
            "write `[{}.CLASS]` with one of {}",
            node.path,
            suggest::listed(CLASSES.into_iter())
        )));
    }
}
