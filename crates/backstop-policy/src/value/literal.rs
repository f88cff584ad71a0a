//! Values that a member of a JSON body is compared with.

use backstop_engine::policy::effect::Literal;
use toml::de::DeValue;

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{Context, Node, Shape, Value};

/// A string, `true`, `false` or a whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiteralValue(pub(crate) Literal);

impl Value for LiteralValue {
    fn read(node: Node<'_>, cx: &mut Context<'_>) -> Option<Self> {
        let literal = match node.get() {
            DeValue::String(text) => Literal::Text(text.as_ref().into()),
            DeValue::Boolean(value) => Literal::Boolean(*value),
            DeValue::Integer(written) => match i64::from_str_radix(written.as_str(), written.radix()) {
                Ok(number) => Literal::Integer(number),
                Err(_) => {
                    let message = format!("`{}` is too large a number", node.path);
                    cx.report(Finding::new(Code::OutOfRange, node.bytes(), message).help(
                        "numbers up to 63 bits are compared; write a longer one as the string that it is",
                    ));
                    return None;
                }
            },
            _ => {
                cx.report(node.wrong_type("a string, `true`, `false` or a whole number"));
                return None;
            }
        };
        Some(LiteralValue(literal))
    }

    fn shape() -> Shape {
        Shape::Literal
    }
}
