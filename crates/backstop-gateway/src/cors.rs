//! Who may read what Backstop or an authorizer answers: the CORS fields of answers that are not the dependency's.
//!
//! Without them a browser shows its page a network error, and nobody learns that the service is full or that the session is
//! over (the Fetch standard, section 3.2). What the dependency answers has its own fields, or none: those are never added to.

use backstop_engine::flow::Account;
use backstop_engine::outcome::Source;
use backstop_policy::CorsSettings;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Response};

/// A route's rules, ready for use.
#[derive(Debug)]
pub(crate) struct Cors {
    /// `None`: all of them.
    origins: Option<Box<[HeaderValue]>>,
    credentials: bool,
    expose: Option<HeaderValue>,
}

/// What a request says of the page that makes it.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    cors: &'a Cors,
    origin: Option<HeaderValue>,
}

impl Cors {
    /// The policy file has checked them; what would still be invalid is left out.
    pub(crate) fn new(settings: &CorsSettings) -> Self {
        let is_any = settings.origins.iter().any(|origin| **origin == *"*");
        let origins = settings.origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
        Self {
            origins: (!is_any).then(|| origins.collect()),
            credentials: settings.credentials,
            expose: HeaderValue::try_from(settings.expose.join(", "))
                .ok()
                .filter(|expose| !expose.is_empty()),
        }
    }

    /// The page of a request.
    pub(crate) fn page(&self, request: &HeaderMap) -> Page<'_> {
        Page { cors: self, origin: request.get(ORIGIN).cloned() }
    }
}

/// Lets a page read an answer that is no single route's, if one of these rules lets it.
pub(crate) fn apply_any<'a>(
    rules: impl Iterator<Item = &'a Cors>,
    request: &HeaderMap,
    headers: &mut HeaderMap,
) {
    let pages: Vec<Page<'_>> = rules.map(|cors| cors.page(request)).collect();
    if let Some(page) = pages.iter().find(|page| page.allowed().is_some()).or(pages.first()) {
        page.apply(headers);
    }
}

impl Page<'_> {
    fn allowed(&self) -> Option<HeaderValue> {
        match &self.cors.origins {
            None => Some(HeaderValue::from_static("*")),
            Some(origins) => self.origin.clone().filter(|origin| origins.contains(origin)),
        }
    }

    /// Lets it read an answer that is nobody's or the authorizer's.
    pub(crate) fn may_read<B>(&self, response: &mut Response<B>) {
        let account = response.extensions().get::<Account>();
        if account.is_some_and(|account| is_no_dependencys(account.source)) {
            self.apply(response.headers_mut());
        }
    }

    /// Lets it read an answer.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        let Cors { origins, credentials, expose } = self.cors;
        if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return;
        }
        if origins.is_some() {
            // Another page gets another answer, also this page's own copy of it.
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(allowed) = self.allowed() else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if *credentials {
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        if let Some(expose) = expose {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, expose.clone());
        }
    }
}

const fn is_no_dependencys(source: Source) -> bool {
    matches!(source, Source::None | Source::Prepared | Source::Omitted | Source::Authorizer | Source::Ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(origins: &[&str], credentials: bool, origin: Option<&'static str>) -> Vec<String> {
        let settings = CorsSettings {
            origins: origins.iter().map(|&origin| origin.into()).collect(),
            credentials,
            expose: vec!["backstop".into(), "retry-after".into()],
        };
        let mut request = HeaderMap::new();
        if let Some(origin) = origin {
            request.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        let mut headers = HeaderMap::new();
        Cors::new(&settings).page(&request).apply(&mut headers);
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    /// The Fetch standard, sections 3.2.3 and 3.2.5.
    #[test]
    fn a_page_that_is_named_may_read_and_no_other() {
        let shop = ["https://shop.example", "https://admin.example:8443"];
        let expose = "access-control-expose-headers: backstop, retry-after";
        let own = "access-control-allow-origin: https://shop.example";
        let credentials = "access-control-allow-credentials: true";
        assert_eq!(told(&shop, false, Some("https://shop.example")), ["vary: origin", own, expose]);
        assert_eq!(
            told(&shop, true, Some("https://shop.example")),
            ["vary: origin", own, credentials, expose]
        );
        for other in [None, Some("https://shop.example.evil"), Some("http://shop.example"), Some("null")] {
            assert_eq!(told(&shop, true, other), ["vary: origin"], "{other:?}");
        }
        assert_eq!(told(&["*"], false, None), ["access-control-allow-origin: *", expose]);
    }

    #[test]
    fn what_an_answer_says_itself_stays() {
        let settings = CorsSettings { origins: vec!["*".into()], credentials: false, expose: Vec::new() };
        let mut headers = HeaderMap::new();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("https://other.example"));
        Cors::new(&settings).page(&HeaderMap::new()).apply(&mut headers);
        assert_eq!(headers.len(), 1);
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "https://other.example");
    }
}
