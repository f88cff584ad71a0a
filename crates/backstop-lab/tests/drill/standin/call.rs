//! One call to what the policy names, or rather to the proxy in front of it.

use std::time::{Duration, SystemTime};
use tokio::time::Instant;

use backstop_lab::{
    client::{Completeness, Connection},
    drill::Facts,
    origin::Request,
    proxy::MARKER,
};

/// What was answered.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) is_json: bool,
    pub(crate) sign: Option<String>,
    pub(crate) age: Duration,
    /// Whether an alternative answered.
    pub(crate) stands_in: bool,
    /// What `Date` says.
    pub(crate) date: Option<SystemTime>,
}

/// Calls, within what is left. A failure is told by the word that Backstop has for it.
pub(crate) async fn call(
    facts: &Facts,
    upstream: usize,
    method: &str,
    target: &str,
    request: &Request,
    deadline: Instant,
    cut: bool,
) -> Result<Heard, String> {
    let left = deadline.saturating_duration_since(Instant::now());
    let address =
        facts.upstreams().get(upstream).and_then(|upstream| upstream.addresses.first()).ok_or("none")?;
    let address = address.parse().map_err(|_| "dns")?;
    let exchange = async {
        let mut connection = Connection::open_within(address, left).await.map_err(|_| "connect")?;
        let kept = ["accept-language", "x-tenant", "authorization", MARKER];
        let mut fields: Vec<(&str, &str)> =
            kept.iter().filter_map(|&name| Some((name, request.header(name)?))).collect();
        fields.push(("Connection", "close"));
        connection.exchange(method, target, &fields, &request.body).await.map_err(|error| {
            match error.ending() {
                Some(backstop_lab::client::Ending::TimedOut) => "read_timeout",
                Some(_) => "reset",
                None => "protocol",
            }
        })
    };
    let response = tokio::time::timeout(left, exchange).await.map_err(|_| "read_timeout")??;
    if response.completeness != Completeness::Complete && !cut {
        return Err("incomplete".to_owned());
    }
    if matches!(response.status(), 502..=504) {
        return Err("unavailable".to_owned());
    }
    Ok(Heard {
        status: response.status(),
        body: response.body.to_vec(),
        is_json: response.header("content-type") == Some("application/json") && response.is_complete(),
        stands_in: false,
        sign: response.header("x-allowed").map(str::to_owned),
        age: Duration::from_secs(response.header("age").and_then(|age| age.parse().ok()).unwrap_or(0)),
        date: response.header("date").and_then(|date| httpdate::parse_http_date(date).ok()),
    })
}
