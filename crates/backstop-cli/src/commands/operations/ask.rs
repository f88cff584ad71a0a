//! One question to the operators' port of a running gateway.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use backstop_lab::client::{ClientError, Connection, Response};
use backstop_policy::Refused;
use serde_json::Value;

use crate::args::{Operations, Port};

const DEFAULT: &str = "127.0.0.1:9901";
/// How long looking up a name may take.
const LOOKUP: Duration = Duration::from_secs(5);
/// How long each step of the exchange may take: longer than the gateway waits for its ledger.
const STEP: Duration = Duration::from_secs(8);

/// Why there is no answer, or which one there is.
#[derive(Debug, thiserror::Error)]
pub(in crate::commands) enum AskError {
    #[error(transparent)]
    Policy(#[from] Box<Refused>),
    #[error("the policy says port 0: which port the gateway took is not known")]
    AnyPort,
    #[error("{0}: no address of a gateway, such as {DEFAULT}")]
    Address(String),
    #[error("{0}: the name leads to no address")]
    Name(String, #[source] io::Error),
    #[error("{0}: the name was not looked up within 5 s")]
    NameTimeout(String),
    #[error("the question cannot be asked")]
    Runtime(#[source] io::Error),
    #[error("no gateway answers at {0}")]
    NoGateway(SocketAddr, #[source] ClientError),
    #[error("what answers at {0} is no operators' port of a gateway")]
    Foreign(SocketAddr),
    #[error("the answer of {0} is not whole")]
    NotWhole(SocketAddr),
    #[error("nobody is named who decides")]
    Nobody,
    #[error("the gateway refuses ({status}): {detail}{state}")]
    Refused { status: u16, detail: String, state: String },
}

impl AskError {
    /// Whether the gateway answered, and said no about this very operation.
    pub(super) fn is_an_answer(&self) -> bool {
        matches!(self, AskError::Refused { status: 404 | 409, .. })
    }

    /// What to do about it, for whoever only wanted to look.
    pub(in crate::commands) fn hint_to_look(&self) -> Option<&'static str> {
        match self {
            AskError::NoGateway(..) | AskError::AnyPort | AskError::Address(_) | AskError::Foreign(_) => {
                Some("name the gateway's admin address with --admin HOST:PORT, or its policy file")
            }
            AskError::Name(..) | AskError::NameTimeout(_) => {
                Some("name an address instead, with --admin HOST:PORT")
            }
            AskError::NotWhole(_) => Some("ask again"),
            AskError::Nobody | AskError::Refused { .. } | AskError::Policy(_) | AskError::Runtime(_) => None,
        }
    }

    /// Whether an order may have come through all the same.
    fn may_be_done(&self) -> bool {
        match self {
            AskError::NoGateway(_, error) => {
                !matches!(error, ClientError::Connect(_) | ClientError::ConnectTimeout(_))
            }
            AskError::Foreign(_) | AskError::NotWhole(_) => true,
            _ => false,
        }
    }

    /// What to do about it, for whoever gave this command.
    pub(super) fn hint(&self, command: &Operations) -> Option<&'static str> {
        let decides = matches!(command, Operations::Resolve(_));
        if decides && self.may_be_done() {
            return Some(
                "the decision may have been written: look with `backstop operations show ID` before you decide again",
            );
        }
        match self {
            AskError::NoGateway(..) | AskError::AnyPort | AskError::Address(_) | AskError::Foreign(_) => {
                Some(
                    "name the gateway's admin address with --admin HOST:PORT, or its policy with --policy FILE",
                )
            }
            AskError::Name(..) | AskError::NameTimeout(_) => {
                Some("name an address instead, with --admin HOST:PORT")
            }
            AskError::Nobody => Some("say who decides with --by NAME"),
            AskError::NotWhole(_) => Some("ask again"),
            AskError::Refused { status: 404, .. } => Some(match command {
                Operations::List(_) => {
                    "it has no route of class `effect` in its policy: name the gateway that has one, with --admin HOST:PORT \
                     or --policy FILE"
                }
                Operations::Show(_) | Operations::Resolve(_) => {
                    "`backstop operations list` shows what there is; what is decided is forgotten after its retention"
                }
            }),
            AskError::Refused { status: 409, .. } => {
                Some("`backstop operations show ID` tells what it is in and how it came to that")
            }
            AskError::Refused { status: 503, .. } if decides => {
                Some("`backstop operations show ID` tells whether a decision was written after all")
            }
            AskError::Policy(_) | AskError::Runtime(_) | AskError::Refused { .. } => None,
        }
    }
}

/// Asks, and gives the answer if it is a yes. Everything in it is bounded.
///
/// # Errors
/// If there is no answer, or another one.
pub(super) fn ask(port: &Port, method: &str, target: &str, order: Option<&Value>) -> Result<Value, AskError> {
    exchange(port, method, target, order, false)
}

/// Looks at a page that is shown only to who calls the gateway by its address.
///
/// # Errors
/// If there is no answer, or another one.
pub(in crate::commands) fn look(port: &Port, target: &str) -> Result<Value, AskError> {
    exchange(port, "GET", target, None, true)
}

fn exchange(
    port: &Port,
    method: &str,
    target: &str,
    order: Option<&Value>,
    by_address: bool,
) -> Result<Value, AskError> {
    let named = address(port)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(AskError::Runtime)?;
    let answer = runtime.block_on(async {
        let address = looked_up(&named).await?;
        let failed = |error| AskError::NoGateway(address, error);
        let mut connection = Connection::open_within(address, STEP).await.map_err(failed)?;
        let host = if by_address { address.to_string() } else { named.clone() };
        let mut fields = vec![("Host", host.as_str()), ("Connection", "close")];
        let body = order.map(Value::to_string).unwrap_or_default();
        if order.is_some() {
            fields.push(("Content-Type", "application/json"));
        }
        let response = connection.exchange(method, target, &fields, body.as_bytes()).await.map_err(failed)?;
        read(&response, address)
    });
    // A name that is still being looked up does not keep the command.
    runtime.shutdown_background();
    answer
}

fn read(response: &Response, address: SocketAddr) -> Result<Value, AskError> {
    if !response.is_complete() {
        return Err(AskError::NotWhole(address));
    }
    let value: Value = response.json().map_err(|_foreign| AskError::Foreign(address))?;
    let status = response.status();
    if status == 200 {
        return Ok(value);
    }
    let detail = value["detail"].as_str().ok_or(AskError::Foreign(address))?;
    let words = |value: &Value| match (value["state"].as_str(), value["why"].as_str()) {
        (Some(state), Some("")) => format!("; it is {state}"),
        (Some(state), Some(why)) => format!("; it is {state} ({why})"),
        _ => String::new(),
    };
    let state = super::table::shown(&words(&value["state"]));
    Err(AskError::Refused { status, detail: super::table::shown(detail), state })
}

/// Where the gateway is said to be.
fn address(port: &Port) -> Result<String, AskError> {
    let Some(policy) = &port.policy else {
        return Ok(port.admin.clone().unwrap_or_else(|| DEFAULT.into()));
    };
    let admin = backstop_policy::load(policy).map_err(Box::new)?.gateway.admin;
    if admin.port() == 0 {
        return Err(AskError::AnyPort);
    }
    Ok(reachable(admin).to_string())
}

/// Every address of a machine is none to connect to; its own is among them.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn looked_up(named: &str) -> Result<SocketAddr, AskError> {
    let has_port = named
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    let is_sound = named.bytes().all(|byte| byte.is_ascii_graphic() && !b"/@?#".contains(&byte));
    if !has_port || !is_sound {
        return Err(AskError::Address(named.to_owned()));
    }
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host(named)).await;
    let mut found = found
        .map_err(|_over| AskError::NameTimeout(named.to_owned()))?
        .map_err(|error| AskError::Name(named.to_owned(), error))?;
    found.next().map(reachable).ok_or_else(|| AskError::Address(named.to_owned()))
}

/// What stands in a query, whatever was written.
pub(super) fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stays_one_parameter() {
        assert_eq!(encoded("-7.0a"), "-7.0a");
        assert_eq!(encoded("7&limit=1 é"), "7%26limit%3D1%20%C3%A9");
    }

    #[test]
    fn every_address_is_reached_on_its_own_machine() {
        let of = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:9901"), "127.0.0.1:9901");
        assert_eq!(of("[::]:9901"), "[::1]:9901");
        assert_eq!(of("10.0.0.7:1"), "10.0.0.7:1");
    }
}
