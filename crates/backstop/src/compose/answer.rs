//! The decided answer of a composed route, as it goes to the client.

use std::time::Duration;

use backstop_engine::composed::PartSet;
use backstop_engine::flow::{Account, Decision, Reply, Settlement};
use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::policy::RouteClass;
use backstop_engine::status::{Refusal, refusal};
use backstop_engine::time::Mono;
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderName, LAST_MODIFIED, SET_COOKIE,
};
use http::{HeaderValue, Response};

use crate::body::ReplyBody;
use crate::budget::Held;
use crate::protected::ProtectedRoute;
use crate::{authorize, fields, own};

use super::Asked;
use super::fields::{keep_private, merge, vary};
use super::part::Came;

/// What a part says of its own representation, which the client did not ask for.
const OF_THE_PART: [HeaderName; 5] = [ETAG, LAST_MODIFIED, ACCEPT_RANGES, CONTENT_RANGE, CONTENT_LOCATION];

/// Makes the answer that was decided from the parts that came.
pub(super) fn answer<B>(
    route: &ProtectedRoute,
    asked: Asked,
    decision: Decision,
    mut came: Vec<Option<Came>>,
    denial: Option<Response<Bytes>>,
) -> Response<ReplyBody<B>> {
    let Decision { reply, mut account, settlement, .. } = decision;
    let now = route.inner.shared.clock.mono();
    if let Reply::Composed { placed, .. } = reply {
        account.age = account.age.max(oldest(placed, &came, now));
    }
    let part = match reply {
        Reply::Part { number } => came.get_mut(number).and_then(Option::take),
        _ => None,
    };
    let answering = Answering { route, asked, account };
    let mut response = match (reply, part) {
        (Reply::Composed { placed, .. }, _) => answering.whole(placed, came, now, settlement),
        (Reply::Part { .. }, Some(part)) => answering.part(part, settlement),
        (Reply::Denied, _) if denial.is_some() => {
            authorize::denied(denial.unwrap_or_default(), asked.is_head, settlement)
        }
        (Reply::Refusal(refusal), _) => answering.refusal(&refusal, settlement),
        // The engine answers with what it was told of; should it ever not be there, nothing is made up.
        _ => answering.refusal(&refusal(Reason::Unclassified, None, Default::default()), settlement),
    };
    let omitted = match reply {
        Reply::Composed { omitted, .. } => answering.names(omitted),
        _ => Vec::new(),
    };
    let is_normal = account.outcome == Outcome::Normal;
    let headers = response.headers_mut();
    headers.remove(fields::BACKSTOP);
    if asked.explain || !is_normal {
        headers.insert(fields::BACKSTOP, fields::backstop_of_whole(&account, &omitted));
    }
    response.extensions_mut().remove::<Account>();
    if !is_normal || account.source == Source::Authorizer {
        response.extensions_mut().insert(account);
    }
    response
}

/// The age of the oldest of the parts that stand in the whole, now that it is sent; `None` if none of them told one.
fn oldest(placed: PartSet, came: &[Option<Came>], now: Mono) -> Option<Duration> {
    let aged = |(number, part): (usize, &Option<Came>)| {
        let part = part.as_ref().filter(|_| placed.contains(number))?;
        let told = part.facts.account.and_then(|account| account.age).max(part.facts.age)?;
        Some(told.saturating_add(part.at.until(now)))
    };
    came.iter().enumerate().filter_map(aged).max()
}

struct Answering<'a> {
    route: &'a ProtectedRoute,
    asked: Asked,
    account: Account,
}

impl Answering<'_> {
    /// The names of the routes of these parts.
    fn names(&self, parts: PartSet) -> Vec<&str> {
        let RouteClass::Composed(rules) = &self.route.state().rules.class else { return Vec::new() };
        let engine = &self.route.inner.shared.engine;
        let named = rules.parts.iter().enumerate().filter(|(number, _)| parts.contains(*number));
        named.map(|(_, part)| &*engine.route(part.route).rules.name).collect()
    }

    fn whole<B>(
        &self,
        placed: PartSet,
        came: Vec<Option<Came>>,
        now: Mono,
        settlement: Settlement,
    ) -> Response<ReplyBody<B>> {
        let stands = |number: usize| came.get(number)?.as_ref().filter(|_| placed.contains(number));
        let text = match &self.route.inner.whole {
            Some(whole) => whole.object.text(&|number| stands(number).map(|part| &*part.body)),
            None => b"{}".to_vec(),
        };
        let varies_by = self.route.inner.whole.as_ref().map_or(&[][..], |whole| &whole.varies_by);
        let (mut head, ()) = Response::new(()).into_parts();
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let parts = (0..came.len()).filter_map(stands).map(|part| part.standing(now));
        merge(&mut head.headers, self.account.outcome == Outcome::Normal, varies_by, parts);
        if self.route.inner.whole.as_ref().is_none_or(|whole| whole.is_private) {
            keep_private(&mut head.headers);
        }
        if let Some(cause) = self.account.cause {
            own::describe_cause(&mut head.headers, cause, &self.route.inner.shared.speaker);
        }
        let content = Bytes::from(text);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
        // Held for itself and for the whole; the whole is made, and the part goes.
        let mut held: Option<Held> = None;
        for part in came.into_iter().flatten() {
            let (mut of_part, bytes) = (part.held, part.body.len() as u64);
            if let Some(of_part) = &mut of_part {
                of_part.shrink(bytes);
            }
            match (&mut held, of_part) {
                (Some(held), Some(of_part)) => held.join(of_part),
                (None, of_part) => held = of_part,
                (Some(_), None) => {}
            }
        }
        let content = own::unless_head(content, self.asked.is_head);
        Response::from_parts(head, ReplyBody::collected(content, None, held, settlement))
    }

    /// The answer of a required part, without what is about that part alone.
    fn part<B>(&self, part: Came, settlement: Settlement) -> Response<ReplyBody<B>> {
        let Came { mut head, body, mut held, .. } = part;
        if let Some(held) = &mut held {
            held.shrink(body.len() as u64);
        }
        OF_THE_PART.iter().for_each(|name| drop(head.headers.remove(name)));
        if head.headers.remove(SET_COOKIE).is_some() {
            head.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let own = head.headers.clone();
        let varies_by = self.route.inner.whole.as_ref().map_or(&[][..], |whole| &whole.varies_by);
        vary(&mut head.headers, varies_by, std::iter::once(&own));
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        let content = own::unless_head(body, self.asked.is_head);
        Response::from_parts(head, ReplyBody::collected(content, None, held, settlement))
    }

    fn refusal<B>(&self, refused: &Refusal, settlement: Settlement) -> Response<ReplyBody<B>> {
        let speaker = &self.route.inner.shared.speaker;
        own::refused(refused, &self.account, speaker, self.asked.is_head, settlement)
    }
}
