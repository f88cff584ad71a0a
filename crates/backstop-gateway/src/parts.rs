//! What the parts of a composed answer are asked for.
//!
//! A part's path is written out of the request's own, segment by segment. A parameter holds one segment of a path that was
//! let in, in its one spelling ([`canonical`](backstop::canonical)), and stands in place of one whole segment. So nothing
//! that a client writes can add a segment, a query or a dot segment: an encoded slash stays an encoded slash.

use backstop::request::PathParameters;
use backstop_engine::policy::RouteId;
use backstop_policy::{PartSettings, Segment};
use http::Uri;

/// One part, ready to be asked for.
#[derive(Debug)]
pub(crate) struct PartRules {
    pub(crate) route: RouteId,
    path: Box<[Segment]>,
    parameters: Box<[Parameter]>,
}

/// A parameter by its name, and what stands for it in segments of the part's path.
type Parameter = (Box<str>, Box<[Segment]>);

impl PartRules {
    pub(crate) fn new(settings: &PartSettings) -> Self {
        let parameters = settings.parameters.iter();
        Self {
            route: settings.route,
            path: settings.path.segments.clone().into(),
            parameters: parameters.map(|(name, value)| (name.clone(), value.clone().into())).collect(),
        }
    }

    /// The part's target in place of the request's, and its parameters as its own route names them. `None` if the request
    /// has not the parameters that the path is made of; the policy's checks leave no such route.
    pub(crate) fn target(&self, uri: &Uri, request: &PathParameters) -> Option<(Uri, PathParameters)> {
        let path = format!("/{}", joined(&self.path, request)?);
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(path.parse().ok()?);
        let own = self.parameters.iter();
        let own = own.map(|(name, value)| Some((name.clone(), joined(value, request)?.into())));
        Some((Uri::from_parts(parts).ok()?, PathParameters(own.collect::<Option<_>>()?)))
    }
}

fn joined(segments: &[Segment], request: &PathParameters) -> Option<String> {
    let text = |segment: &Segment| match segment {
        Segment::Literal(text) => Some(text.to_string()),
        Segment::Parameter(name) => request.get(name).map(str::to_owned),
        Segment::Rest(_) => None,
    };
    Some(segments.iter().map(text).collect::<Option<Vec<_>>>()?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_policy::Template;

    fn literal(text: &str) -> Segment {
        Segment::Literal(text.into())
    }

    fn rules() -> PartRules {
        let product = Segment::Parameter("product".into());
        PartRules::new(&PartSettings {
            route: RouteId(1),
            path: Template { segments: vec![literal("products"), product.clone(), literal("reviews")] },
            parameters: vec![("id".into(), vec![product]), ("kind".into(), vec![literal("reviews")])],
        })
    }

    fn target(uri: &str, product: &str) -> Option<(String, PathParameters)> {
        let request = PathParameters(vec![("product".into(), product.into())]);
        let (uri, own) = rules().target(&uri.parse().unwrap(), &request)?;
        Some((uri.to_string(), own))
    }

    #[test]
    fn a_parameter_stands_in_place_of_one_segment() {
        let own =
            |id: &str| PathParameters(vec![("id".into(), id.into()), ("kind".into(), "reviews".into())]);
        let table = [
            ("/pages/42", "42", "/products/42/reviews"),
            ("/pages/42?sort=new", "42", "/products/42/reviews"),
            ("http://shop.example/pages/42?x", "42", "http://shop.example/products/42/reviews"),
            ("/pages/a%2Fb", "a%2Fb", "/products/a%2Fb/reviews"),
            ("/pages/a%3Fb%23c", "a%3Fb%23c", "/products/a%3Fb%23c/reviews"),
            ("/pages/a;b=c", "a;b=c", "/products/a;b=c/reviews"),
        ];
        for (uri, product, expected) in table {
            assert_eq!(target(uri, product), Some((expected.to_owned(), own(product))), "{uri}");
        }
    }

    #[test]
    fn without_its_parameter_there_is_no_target() {
        assert_eq!(rules().target(&"/pages/42".parse().unwrap(), &PathParameters::default()), None);
    }

    #[test]
    fn no_segment_at_all_is_the_root() {
        let settings = PartSettings {
            route: RouteId(1),
            path: Template { segments: Vec::new() },
            parameters: Vec::new(),
        };
        let (uri, _) = PartRules::new(&settings)
            .target(&"/pages/42".parse().unwrap(), &PathParameters::default())
            .unwrap();
        assert_eq!(uri, "/");
    }
}
