//! What an operation is told by: `header.NAME` or `body:/POINTER` for its key and for what an answer repeats, and among whom
//! keys are told apart.

use backstop_engine::policy::effect::{EchoSource, KeySource, Scope};

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::suggest;
use crate::value::{EditableHeader, Pointer};

/// Where the client's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperationKey(pub(crate) KeySource);

/// Among whom keys are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScopeText(pub(crate) Scope);

/// What a status answer repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EchoText(pub(crate) EchoSource);

const HEADER: &str = "header.";
const BODY: &str = "body:";
const OPERATION_ID: &str = "operation_id";

/// Fields that hold a secret. A new token for the same caller would make the same operation a new one.
const SECRETS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
/// Fields that hold an address: many callers share one, and one caller has several.
const ADDRESSES: [&str; 6] =
    ["cf-connecting-ip", "client-ip", "forwarded", "true-client-ip", "x-forwarded-for", "x-real-ip"];
/// Words for an address.
const ADDRESS_WORDS: [&str; 6] = ["address", "client", "client_ip", "ip", "peer", "remote_addr"];

impl Scalar for OperationKey {
    const EXPECTED: &'static str =
        "where the client's key is, such as \"header.idempotency-key\" or \"body:/orderId\"";
    const NAME: &'static str = "`header.NAME`, or `body:` and a JSON Pointer";
    const PATTERN: Option<&'static str> = Some("^(header\\..+|body:/.*)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::OperationKey, message);
        if let Some(name) = text.strip_prefix(HEADER) {
            let name = header(name, Code::OperationKey)?;
            if SECRETS.contains(&&*name) {
                return Err(invalid(format!("`{name}` is a secret, and no key of an operation"))
                    .part(HEADER.len()..text.len())
                    .help("name the header in which the client sends a key of its own for each operation"));
            }
            return Ok(OperationKey(KeySource::Header(name)));
        }
        match text.strip_prefix(BODY) {
            Some(pointer) => body(pointer, Code::OperationKey).map(KeySource::Body).map(OperationKey),
            None => {
                let fault = invalid(format!("`{}` says not where the key is", text.escape_debug()));
                Err(match EditableHeader::parse(text) {
                    Ok(EditableHeader(name)) if name.contains('-') => {
                        fault.instead(format!("{HEADER}{name}"))
                    }
                    _ if text.starts_with('/') => fault.instead(format!("{BODY}{text}")),
                    _ => fault
                        .help("write `header.NAME`, or `body:` and a JSON Pointer such as `body:/orderId`"),
                })
            }
        }
    }
}

impl Scalar for ScopeText {
    const EXPECTED: &'static str = "a scope: \"principal\", \"header.NAME\" or \"route\"";
    const NAME: &'static str = "`\"principal\"`, `\"route\"`, or `header.NAME`";
    const PATTERN: Option<&'static str> = Some("^(principal|route|header\\..+)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        match text {
            "principal" => return Ok(ScopeText(Scope::Principal)),
            "route" => return Ok(ScopeText(Scope::Route)),
            _ => {}
        }
        let Some(written) = text.strip_prefix(HEADER) else {
            if SECRETS.contains(&text) || ADDRESSES.contains(&text) || ADDRESS_WORDS.contains(&text) {
                return Err(no_identity(text));
            }
            let fault = Fault::new(Code::Scope, format!("`{}` is no scope", text.escape_debug()));
            return Err(match suggest::closest(text, ["principal", "route"]) {
                Some(close) => fault.instead(close),
                None => fault.help("write `principal`, `header.NAME` or `route`"),
            });
        };
        let name = header(written, Code::Scope)?;
        if SECRETS.contains(&&*name) || ADDRESSES.contains(&&*name) {
            return Err(no_identity(&name).part(HEADER.len()..text.len()));
        }
        Ok(ScopeText(Scope::Header(name)))
    }
}

fn no_identity(name: &str) -> Fault {
    let why = match SECRETS.contains(&name) {
        true => "a client that renews it would execute its operation again",
        false => "many callers share an address, and would get each other's answers",
    };
    Fault::new(Code::NoIdentity, format!("`{name}` tells no caller apart: {why}"))
        .help("let an `authorizer` say who calls (`principal`), or name a header that a trusted proxy sets")
}

impl Scalar for EchoText {
    const EXPECTED: &'static str = "what is repeated: \"operation_id\" or a member such as \"body:/amount\"";
    const NAME: &'static str = "`\"operation_id\"`, or `body:` and a JSON Pointer";
    const PATTERN: Option<&'static str> = Some("^(operation_id|body:/.*)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        if text == OPERATION_ID {
            return Ok(EchoText(EchoSource::OperationId));
        }
        if let Some(pointer) = text.strip_prefix(BODY) {
            return body(pointer, Code::Echo).map(EchoSource::Body).map(EchoText);
        }
        let fault = Fault::new(Code::Echo, format!("`{}` is nothing that was sent", text.escape_debug()));
        let bare = text.trim_matches(['{', '}']);
        Err(match suggest::closest(bare, [OPERATION_ID]) {
            Some(close) => fault.instead(close),
            None if text.starts_with('/') => fault.instead(format!("{BODY}{text}")),
            None => {
                fault.help("write `operation_id`, or a member of the request's body such as `body:/amount`")
            }
        })
    }
}

/// The name after `header.`, in lower case.
fn header(name: &str, code: Code) -> Result<Box<str>, Fault> {
    let part = HEADER.len()..HEADER.len() + name.len();
    let read = EditableHeader::parse(name).map(|EditableHeader(name)| name);
    read.map_err(|fault| match fault.code {
        Code::ReservedHeader => {
            Fault::new(code, format!("`{name}` belongs to the connection or to the message's framing"))
                .part(part)
                .help("name a header that the caller, or a proxy in front, sends for this")
        }
        _ => Fault { code, instead: None, ..fault }.part(part),
    })
}

/// The pointer after `body:`, to a member.
fn body(pointer: &str, code: Code) -> Result<Box<str>, Fault> {
    let part = BODY.len()..BODY.len() + pointer.len();
    if !pointer.starts_with('/') {
        return Err(Fault::new(
            code,
            "a member of the body is named by a JSON Pointer, which begins with `/`",
        )
        .help("write `body:` and the pointer, such as `body:/orderId`")
        .instead(format!("{BODY}/{}", pointer.trim_start_matches(['$', '.']).replace('.', "/"))));
    }
    let read = Pointer::parse(pointer).map(|Pointer(pointer)| pointer);
    read.map_err(|fault| Fault { code, ..fault }.part(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T: Scalar>(text: &str) -> Option<Code> {
        T::parse(text).err().map(|fault| fault.code)
    }

    #[test]
    fn a_key_comes_from_a_header_or_from_a_member_of_the_body() {
        let key = |text: &str| OperationKey::parse(text).map(|key| key.0).map_err(|fault| fault.message);
        assert_eq!(key("header.Idempotency-Key"), Ok(KeySource::Header("idempotency-key".into())));
        assert_eq!(key("body:/order/id"), Ok(KeySource::Body("/order/id".into())));
        for bad in [
            "",
            "header.",
            "header.a b",
            "header.host",
            "header.authorization",
            "header.Cookie",
            "body:",
            "body:id",
            "body:/~2",
            "query.id",
            "path.id",
            "idempotency-key",
        ] {
            assert_eq!(code::<OperationKey>(bad), Some(Code::OperationKey), "{bad}");
        }
        let instead = |text: &str| OperationKey::parse(text).err().and_then(|fault| fault.instead);
        assert_eq!(instead("Idempotency-Key").as_deref(), Some("header.idempotency-key"));
        assert_eq!(instead("/orderId").as_deref(), Some("body:/orderId"));
        assert_eq!(instead("body:$.order.id").as_deref(), Some("body:/order/id"));
    }

    #[test]
    fn a_scope_is_an_identity_and_neither_a_secret_nor_an_address() {
        let scope = |text: &str| ScopeText::parse(text).map(|scope| scope.0).map_err(|fault| fault.message);
        assert_eq!(scope("principal"), Ok(Scope::Principal));
        assert_eq!(scope("route"), Ok(Scope::Route));
        assert_eq!(scope("header.X-Tenant"), Ok(Scope::Header("x-tenant".into())));
        for bad in [
            "header.authorization",
            "header.Cookie",
            "header.proxy-authorization",
            "cookie",
            "ip",
            "header.x-forwarded-for",
            "header.Forwarded",
            "client_ip",
            "x-real-ip",
        ] {
            assert_eq!(code::<ScopeText>(bad), Some(Code::NoIdentity), "{bad}");
        }
        for bad in ["", "header.", "header.host", "Principal", "tenant", "body:/tenant"] {
            assert_eq!(code::<ScopeText>(bad), Some(Code::Scope), "{bad}");
        }
        assert_eq!(ScopeText::parse("principle").err().and_then(|f| f.instead).as_deref(), Some("principal"));
    }

    #[test]
    fn an_answer_repeats_the_operation_or_a_member_of_the_request() {
        let echo = |text: &str| EchoText::parse(text).map(|echo| echo.0).map_err(|fault| fault.message);
        assert_eq!(echo("operation_id"), Ok(EchoSource::OperationId));
        assert_eq!(echo("body:/amount"), Ok(EchoSource::Body("/amount".into())));
        for bad in ["", "header.x", "body:", "body:amount", "/amount", "{operation_id}", "language"] {
            assert_eq!(code::<EchoText>(bad), Some(Code::Echo), "{bad}");
        }
        let instead = |text: &str| EchoText::parse(text).err().and_then(|fault| fault.instead);
        assert_eq!(instead("{operation_id}").as_deref(), Some("operation_id"));
        assert_eq!(instead("/amount").as_deref(), Some("body:/amount"));
    }
}
