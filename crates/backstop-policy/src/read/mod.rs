//! From spanned TOML to typed tables, in one pass that reports everything it meets.
//!
//! A [`Value`] reads itself from a [`Node`]; a table is a struct made by `table!`, whose keys, defaults and
//! documentation are at once what the reader knows, what the JSON Schema says and what the reference prints.
//! A value that cannot be read is reported and becomes `None`; reading goes on with the next key.

mod context;
mod list;
mod node;
mod reader;
mod shape;
mod table;

pub(crate) use context::Context;
pub(crate) use list::{List, MapKey, Named, OneOrMany};
pub(crate) use node::{At, Fault, Node, Scalar, Value, with_units};
pub(crate) use reader::{Elsewhere, Reader, not_available};
pub(crate) use shape::{Field, Need, Shape};
pub(crate) use table::{Table, about, table};
