//! The target that a dependency is asked for: path and query as they came (RFC 9110 section 7.7), without the route's prefix.
//!
//! Routes are matched and copies are found by one spelling of a path ([`canonical`]). A prefix that went by the bytes as they
//! came would be found in one spelling and not in another, and two resources would lie under one key. So it goes by
//! segments, each in that one spelling; what follows it stays as it came.

use backstop::canonical;
use http::Uri;
use http::uri::PathAndQuery;

/// The beginning of a path, segment by segment.
#[derive(Debug)]
pub(crate) struct Prefix(Box<[Box<str>]>);

impl Prefix {
    /// `text` begins with a slash and does not end with one.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.split('/').skip(1).map(|segment| canonical::escapes(segment).into()).collect())
    }

    /// What follows it: nothing, or something that begins with a slash. `None` if the path does not begin with it.
    fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        self.0.iter().try_fold(path, |rest, wanted| {
            let rest = rest.strip_prefix('/')?;
            let (segment, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (canonical::escapes(segment) == **wanted).then_some(rest)
        })
    }
}

/// The target in origin form, or `None` if its path does not begin with the prefix.
pub(crate) fn origin_form(uri: &Uri, prefix: Option<&Prefix>) -> Option<Uri> {
    let path = match prefix {
        Some(prefix) => prefix.strip(uri.path())?,
        None => match uri.path_and_query() {
            Some(whole) if whole.as_str().starts_with('/') => return Some(whole.clone().into()),
            _ => uri.path(),
        },
    };
    let query = uri.query();
    let mut target = String::with_capacity(path.len() + query.map_or(0, str::len) + 2);
    if !path.starts_with('/') {
        target.push('/');
    }
    target.push_str(path);
    if let Some(query) = query {
        target.push('?');
        target.push_str(query);
    }
    PathAndQuery::try_from(target).ok().map(Uri::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(uri: &str, prefix: Option<&str>) -> Option<String> {
        let prefix = prefix.map(Prefix::new);
        origin_form(&uri.parse().unwrap(), prefix.as_ref()).map(|uri| uri.to_string())
    }

    #[test]
    fn path_and_query_go_on_as_they_came() {
        for (uri, prefix, target) in [
            ("http://a/b%2Fc//d?x=%20&y", None, "/b%2Fc//d?x=%20&y"),
            ("http://a", None, "/"),
            ("http://a?x", None, "/?x"),
            ("/?", None, "/?"),
            ("/api/products/1?x", Some("/api"), "/products/1?x"),
            ("/api", Some("/api"), "/"),
            ("/api?x=1", Some("/api"), "/?x=1"),
            ("/api/", Some("/api"), "/"),
            ("/api//%31", Some("/api"), "//%31"),
        ] {
            assert_eq!(form(uri, prefix).as_deref(), Some(target), "{uri}");
        }
    }

    /// Whatever the router takes for the prefix is the prefix, and nothing else is.
    #[test]
    fn a_prefix_is_one_in_every_spelling() {
        for (uri, prefix, target) in [
            ("/%61pi/v1/%70/1", "/api/v1", "/%70/1"),
            ("/a%70i/%761", "/api/v1", "/"),
            ("/api/v1/1?/api", "/%61pi/v%31", "/1?/api"),
            ("/caf%c3%a9/1", "/caf%C3%A9", "/1"),
            ("/a%2fb/1", "/a%2Fb", "/1"),
        ] {
            assert_eq!(form(uri, Some(prefix)).as_deref(), Some(target), "{uri}");
        }
        for uri in ["/apis/1", "/ap", "/API/v1/1", "/api%2Fv1/1", "/%2561pi/v1/1", "//api/v1", "/api/v10"] {
            assert_eq!(form(uri, Some("/api/v1")), None, "{uri}");
        }
    }
}
