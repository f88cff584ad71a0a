//! Which requests a behaviour is for.

/// Path part of a matcher. Query and fragment are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Path {
    Any,
    Exact(String),
    Prefix(String),
}

/// Which requests a behaviour is for: a method, or any; a path, a prefix, or any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    method: Option<String>,
    path: Path,
}

impl Matcher {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self { method: None, path: Path::Any }
    }

    /// Requests for exactly this path, whatever their query.
    #[must_use]
    pub fn path(path: &str) -> Self {
        Self { method: None, path: Path::Exact(path.to_owned()) }
    }

    /// Requests whose path begins with `prefix`, byte for byte.
    #[must_use]
    pub fn prefix(prefix: &str) -> Self {
        Self { method: None, path: Path::Prefix(prefix.to_owned()) }
    }

    /// `GET` of exactly this path.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self::path(path).method("GET")
    }

    /// `POST` to exactly this path.
    #[must_use]
    pub fn post(path: &str) -> Self {
        Self::path(path).method("POST")
    }

    /// Narrows it to one method, compared byte for byte.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Whether a request with this method and request target is meant.
    #[must_use]
    pub fn matches(&self, method: &str, target: &str) -> bool {
        let path = path_of(target);
        self.method.as_deref().is_none_or(|wanted| wanted == method)
            && match &self.path {
                Path::Any => true,
                Path::Exact(wanted) => wanted == path,
                Path::Prefix(wanted) => path.starts_with(wanted.as_str()),
            }
    }
}

/// The path of a request target: without query, and without scheme and authority in absolute form.
pub(crate) fn path_of(target: &str) -> &str {
    let path = target.split('?').next().unwrap_or(target);
    match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::{Matcher, path_of};

    #[test]
    fn path_query_and_method_are_told_apart() {
        assert!(Matcher::get("/p/1").matches("GET", "/p/1?x=2"));
        assert!(!Matcher::get("/p/1").matches("HEAD", "/p/1"));
        assert!(!Matcher::path("/p/1").matches("GET", "/p/11"));
        assert!(Matcher::prefix("/p/").matches("PUT", "/p/11"));
        assert!(Matcher::any().matches("BREW", "*"));
        assert_eq!(path_of("http://shop/p/1?q"), "/p/1");
    }
}
