//! A plain reverse proxy: what is usually put in front of services, with the defaults that it usually has. What a policy is
//! compared with.
//!
//! | what | here | as in nginx |
//! |---|---|---|
//! | forwarding | one upstream for a prefix of the path, nothing is kept and nothing repeated | `proxy_pass`; a failed POST goes to no next upstream |
//! | no connection, or no whole answer | 502 | |
//! | no answer within `timeout` | 504 | `proxy_read_timeout`, 60 s by default |
//! | who may | another service is asked; 2xx goes on, 401 and 403 are passed on, anything else is 500 | `auth_request` |
//! | cache | a shared cache is asked; what it does not have, or when it does not answer, goes to the upstream, however much that is | `memcached_pass` with `error_page 404 502 504 = @upstream`, or the same by the service itself |
//!
//! It has no limit of its own on anything: nginx has none either unless one is written.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::cache;
use crate::client::{ClientError, Completeness, Connection, Ending, Response};
use crate::origin::{Answer, Behaviour, Limits, Matcher, Origin, Request};

/// How long the cache is waited for.
const CACHE_TIMEOUT: Duration = Duration::from_millis(50);
/// Fields of a request that are about one connection, or that the client writes itself.
const OWN_FIELDS: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];

/// Where requests with one prefix go.
#[derive(Clone, Debug)]
pub struct Way {
    /// The beginning of their paths.
    pub prefix: &'static str,
    /// Where they go.
    pub upstream: SocketAddr,
    /// Who is asked first whether they may (`GET /check`).
    pub authorizer: Option<SocketAddr>,
    /// The cache that is asked first, and for how long it keeps what it is given.
    pub cache: Option<(SocketAddr, Duration)>,
}

/// A running plain proxy. It stops when it is dropped.
#[derive(Clone, Debug)]
pub struct Plain(Origin);

impl Plain {
    /// Starts one on a free port of 127.0.0.1. `patience` is how long it waits for an upstream.
    ///
    /// # Errors
    ///
    /// When the port cannot be listened on.
    pub async fn start(ways: Vec<Way>, patience: Duration) -> std::io::Result<Self> {
        let limits = Limits { records: 0, connection_records: 0, ..Limits::default() };
        let origin =
            Origin::builder().limits(limits).default_behaviour(Behaviour::status(404)).start().await?;
        for way in ways {
            let matcher = Matcher::prefix(way.prefix);
            let way = Arc::new(way);
            origin.on(
                matcher,
                Behaviour::from_async_fn(move |request| {
                    let way = Arc::clone(&way);
                    async move { way.answer(&request, patience).await.into() }
                }),
            );
        }
        Ok(Self(origin))
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.0.addr()
    }
}

impl Way {
    async fn answer(&self, request: &Request, patience: Duration) -> Answer {
        let user = match self.authorizer {
            None => None,
            Some(authorizer) => match may(authorizer, request, patience).await {
                Ok(user) => user,
                Err(status) => return page(status),
            },
        };
        let Some((cache, lasts)) = self.cache else {
            return passed_on(self.forward(request, user.as_deref(), patience).await);
        };
        let key = request.target.as_bytes();
        if let Ok(Ok(Some(value))) = timeout(CACHE_TIMEOUT, cache::ask(cache, &[b"GET", key])).await {
            return Answer::json(value);
        }
        let answer = self.forward(request, user.as_deref(), patience).await;
        if let Ok(whole) = &answer
            && whole.status() == 200
        {
            let millis = lasts.as_millis().to_string();
            let set: [&[u8]; 5] = [b"SET", key, &whole.body, b"PX", millis.as_bytes()];
            let _not_kept = timeout(CACHE_TIMEOUT, cache::ask(cache, &set)).await;
        }
        passed_on(answer)
    }

    async fn forward(
        &self,
        request: &Request,
        user: Option<&str>,
        patience: Duration,
    ) -> Result<Response, u16> {
        let mut fields: Vec<(&str, &str)> = request
            .fields
            .iter()
            .filter(|field| !OWN_FIELDS.contains(&field.name.to_ascii_lowercase().as_str()))
            .map(|field| (field.name.as_str(), field.value.as_str()))
            .collect();
        fields.extend(user.map(|user| ("X-User", user)));
        ask(self.upstream, &request.method, &request.target, &fields, &request.body, patience).await
    }
}

/// Whom the authorizer names, or what is answered instead.
async fn may(authorizer: SocketAddr, request: &Request, patience: Duration) -> Result<Option<String>, u16> {
    let credential = request.header("authorization").unwrap_or_default();
    let fields = [("Authorization", credential), ("X-Original-URI", &request.target)];
    match ask(authorizer, "GET", "/check", &fields, b"", patience).await {
        Ok(answer) if (200..300).contains(&answer.status()) => Ok(answer.header("x-user").map(str::to_owned)),
        Ok(answer) if matches!(answer.status(), 401 | 403) => Err(answer.status()),
        // "Any other response code returned by the subrequest is considered an error" (ngx_http_auth_request_module).
        Ok(_) | Err(_) => Err(500),
    }
}

/// One exchange, and the status that stands for its failure.
async fn ask(
    peer: SocketAddr,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &[u8],
    patience: Duration,
) -> Result<Response, u16> {
    let exchange = async {
        let mut connection = Connection::open_within(peer, patience).await?;
        let fields: Vec<_> = fields.iter().copied().chain([("Connection", "close")]).collect();
        connection.exchange(method, target, &fields, body).await
    };
    match timeout(patience, exchange).await {
        Ok(Ok(answer)) if answer.completeness == Completeness::Complete => Ok(answer),
        Ok(Err(ClientError::ConnectTimeout(_) | ClientError::SendTimeout(_))) | Err(_) => Err(504),
        Ok(Err(error)) if error.ending() == Some(Ending::TimedOut) => Err(504),
        Ok(_) => Err(502),
    }
}

fn passed_on(answer: Result<Response, u16>) -> Answer {
    let answer = match answer {
        Ok(answer) => answer,
        Err(status) => return page(status),
    };
    let mut passed = Answer::new(answer.status()).body(answer.body.clone());
    for name in ["Content-Type", "Location"] {
        if let Some(value) = answer.header(name) {
            passed = passed.header(name, value);
        }
    }
    passed
}

fn page(status: u16) -> Answer {
    Answer::new(status).header("Content-Type", "text/html").body(format!("<h1>{status}</h1>\n"))
}

#[cfg(test)]
mod tests;
