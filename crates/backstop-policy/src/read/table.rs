//! `table!`: one description of a table for the reader, the schema and the reference.

use crate::read::{Context, Elsewhere, Field, Node, Reader, Shape};

/// A table with known keys.
pub(crate) trait Table: Sized {
    /// What the table is for.
    fn about() -> String;
    /// Its keys, in the order of the reference.
    fn fields() -> Vec<Field>;
    /// Keys that are known but not available in this version, with what each would give.
    fn later() -> Vec<(&'static str, &'static str)>;
    /// Keys that stand elsewhere, with what to write instead.
    fn moved() -> Vec<(&'static str, &'static str)>;
    /// Reads the keys; the caller finishes the reader.
    fn read_fields(reader: &mut Reader<'_>, cx: &mut Context<'_>) -> Self;

    /// Reads the table at this node and reports unknown keys.
    fn read_table(
        node: Node<'_>,
        elsewhere: fn(&str) -> Option<Elsewhere>,
        cx: &mut Context<'_>,
    ) -> Option<Self> {
        let mut reader = Reader::open(node, cx)?;
        let table = Self::read_fields(&mut reader, cx);
        reader.later(&Self::later());
        reader.moved(&Self::moved());
        reader.elsewhere(elsewhere);
        reader.finish(cx);
        Some(table)
    }

    /// How it looks.
    fn table_shape() -> Shape {
        Shape::Table { about: Self::about(), fields: Self::fields() }
    }
}

/// Joins the lines of a doc comment.
pub(crate) fn about(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Defines a table: every key once, with its type, its need and its documentation.
///
/// `..field: Type;` takes in all keys of another table at this level.
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        struct $name:ident {
            $(..$common:ident: $common_type:ty;)?
            $($(#[doc = $doc:literal])* $key:literal $field:ident: $type:ty = $need:expr;)*
        }
        $(later { $($later:literal => $what:literal;)* })?
        $(moved { $($moved:literal => $instead:literal;)* })?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $common: $common_type,)?
            $($(#[doc = $doc])* pub(crate) $field: Option<$crate::read::At<$type>>,)*
        }

        impl $crate::read::Table for $name {
            fn about() -> String {
                $crate::read::about(&[$($about),*])
            }

            fn fields() -> Vec<$crate::read::Field> {

                let mut fields = Vec::new();
                $(fields.extend(<$common_type as $crate::read::Table>::fields());)?
                fields.extend([$($crate::read::Field {
                    key: $key,
                    about: $crate::read::about(&[$($doc),*]),
                    need: $need,
                    shape: <$type as $crate::read::Value>::shape(),
                },)*]);
                fields
            }

            fn later() -> Vec<(&'static str, &'static str)> {
                #[allow(unused_mut, clippy::allow_attributes, reason = "not every table has any")]
                let mut later = Vec::new();
                $(later.extend(<$common_type as $crate::read::Table>::later());)?
                $(later.extend([$(($later, $what),)*]);)?
                later
            }

            fn moved() -> Vec<(&'static str, &'static str)> {
                vec![$($(($moved, $instead),)*)?]
            }

            fn read_fields(reader: &mut $crate::read::Reader<'_>, cx: &mut $crate::read::Context<'_>) -> Self {
                $(let $common = <$common_type as $crate::read::Table>::read_fields(reader, cx);)?
                $(let $field = reader.field::<$type>($key, $need, cx);)*
                Self { $($common,)? $($field,)* }
            }
        }

        impl $crate::read::Value for $name {
            fn read(node: $crate::read::Node<'_>, cx: &mut $crate::read::Context<'_>) -> Option<Self> {
                <Self as $crate::read::Table>::read_table(node, |_| None, cx)
            }

            fn shape() -> $crate::read::Shape {
                <Self as $crate::read::Table>::table_shape()
            }
        }
    };
}

pub(crate) use table;
