//! The path of a part of a composed answer, and whether a route matches it whatever its parameters are.

use super::{Segment, Template, parse_template};
use crate::code::Code;
use crate::read::{Fault, Scalar};

/// A path of literals and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartPath(pub(crate) Template);

impl Scalar for PartPath {
    const EXPECTED: &'static str = "a path such as \"/products/{product}\"";
    const NAME: &'static str = "path template";
    const PATTERN: Option<&'static str> = Some("^/[^?#*]*$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let template = parse_template(text)?;
        if template.segments.iter().any(|segment| matches!(segment, Segment::Rest(_))) {
            return Err(Fault::new(
                Code::Match,
                "a part's path has no rest: what a rest holds is not one segment",
            )
            .help("name each segment: `/products/{product}`"));
        }
        Ok(PartPath(template))
    }
}

impl Template {
    /// If this rule matches the path whatever its parameters are: what stands for each parameter of the rule, in segments of
    /// the path. A rest for which nothing is left stands for nothing; it begins after a slash, so that `/p/{rest*}` matches
    /// `/p/` and not `/p`.
    pub(crate) fn takes(&self, path: &Template) -> Option<Vec<(Box<str>, Vec<Segment>)>> {
        let mut left = path.segments.as_slice();
        let mut taken = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            if let Segment::Rest(name) = segment {
                match left {
                    // Only the path `/` has no segments.
                    [] if index > 0 => return None,
                    [] => {}
                    [Segment::Literal(last)] if last.is_empty() => {}
                    _ => taken.push((name.clone(), left.to_vec())),
                }
                return Some(taken);
            }
            let (first, rest) = left.split_first()?;
            left = rest;
            match (segment, first) {
                (Segment::Literal(rule), Segment::Literal(path)) if rule == path => {}
                (Segment::Parameter(name), Segment::Parameter(_)) => {
                    taken.push((name.clone(), vec![first.clone()]));
                }
                (Segment::Parameter(name), Segment::Literal(path)) if !path.is_empty() => {
                    taken.push((name.clone(), vec![first.clone()]));
                }
                _ => return None,
            }
        }
        left.is_empty().then_some(taken)
    }

    /// How specific it is, to be compared segment by segment: a literal before a parameter before a rest.
    pub(crate) fn rank(&self) -> Vec<u8> {
        let rank = |segment: &Segment| match segment {
            Segment::Literal(_) => 2,
            Segment::Parameter(_) => 1,
            Segment::Rest(_) => 0,
        };
        self.segments.iter().map(rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        parse_template(text).unwrap()
    }

    /// What stands for each parameter, written as `name=segments`.
    fn taken(rule: &str, path: &str) -> Option<Vec<String>> {
        let taken = template(rule).takes(&template(path))?;
        let written =
            |(name, segments): (Box<str>, Vec<Segment>)| format!("{name}={}", Template { segments });
        Some(taken.into_iter().map(written).collect())
    }

    #[test]
    fn a_rule_takes_a_path_only_if_it_always_matches() {
        let some = |written: &[&str]| Some(written.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let table = [
            ("/p/{id}", "/p/{product}", some(&["id=/{product}"])),
            ("/p/{id}", "/p/42", some(&["id=/42"])),
            ("/p/{id}/r", "/p/{product}/r", some(&["id=/{product}"])),
            ("/p/{all*}", "/p/{a}/x/{b}", some(&["all=/{a}/x/{b}"])),
            ("/p/{all*}", "/p", None),
            ("/p/{all*}", "/p/", some(&[])),
            ("/p/{all*}", "/p/a/", some(&["all=/a/"])),
            ("/p/{id}/{all*}", "/p/{a}", None),
            ("/p/{id}/{all*}", "/p/{a}/", some(&["id=/{a}"])),
            ("/{all*}", "/", some(&[])),
            ("/{all*}", "/p", some(&["all=/p"])),
            ("/", "/", some(&[])),
            ("/p/", "/p/", some(&[])),
            ("/p/42", "/p/{product}", None),
            ("/p/{id}", "/p", None),
            ("/p/{id}", "/p/", None),
            ("/p/{id}", "/p/{a}/{b}", None),
            ("/p/{id}/r", "/p/{a}", None),
            ("/q/{id}", "/p/{a}", None),
            ("/p", "/p/", None),
        ];
        for (rule, path, expected) in table {
            assert_eq!(taken(rule, path), expected, "{rule} {path}");
        }
    }
}
