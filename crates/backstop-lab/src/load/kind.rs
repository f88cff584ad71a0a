//! One kind of request in a load.

use std::{fmt, net::SocketAddr, sync::Arc};

use bytes::Bytes;

use crate::client::{RequestBytes, Response};

type Check = Arc<dyn Fn(&Response) -> bool + Send + Sync>;

/// One kind of request: a name, a weight, and the requests, which take turns.
#[derive(Clone)]
pub struct Kind {
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) check: Option<Check>,
    method: String,
    targets: Vec<String>,
    fields: Vec<(String, String)>,
    body: Bytes,
}

impl Kind {
    /// Requests with this method and target, named `name` in the summary; weight 1.
    #[must_use]
    pub fn new(name: &str, method: &str, target: &str) -> Self {
        Self {
            name: name.to_owned(),
            weight: 1,
            check: None,
            method: method.to_owned(),
            targets: vec![target.to_owned()],
            fields: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// `GET` of this target, named by it.
    #[must_use]
    pub fn get(target: &str) -> Self {
        Self::new(target, "GET", target)
    }

    /// Its share of the requests: weight by sum of weights. 0 is never sent.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// The targets, which take turns.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = String>) -> Self {
        self.targets = targets.into_iter().collect();
        self
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body, framed by `Content-Length`.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// What a right answer is: each whole answer for which `check` is false is counted as `wrong`. Runs on the
    /// generator's thread and must be quick.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&Response) -> bool + Send + Sync + 'static) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// The bytes of its requests, one per target.
    pub(crate) fn prepare(&self, target: SocketAddr) -> Prepared {
        let fields: Vec<_> =
            self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let host = target.to_string();
        let bytes = |path: &String| RequestBytes::new(&host, &self.method, path, &fields, &self.body).0;
        Prepared { method: self.method.clone(), requests: self.targets.iter().map(bytes).collect() }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Kind")
            .field("name", &self.name)
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

/// The bytes of a kind's requests.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) method: String,
    pub(crate) requests: Vec<Bytes>,
}

/// Which kind is next: smooth weighted turns, the same in every run.
#[derive(Debug)]
pub(crate) struct Turns {
    weights: Vec<i64>,
    credit: Vec<i64>,
}

impl Turns {
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        let weights: Vec<i64> = kinds.iter().map(|kind| i64::from(kind.weight)).collect();
        Self { credit: vec![0; weights.len()], weights }
    }

    pub(crate) fn next(&mut self) -> usize {
        let total: i64 = self.weights.iter().sum();
        let mut chosen = 0;
        for (at, weight) in self.weights.iter().enumerate() {
            self.credit[at] += weight;
            if self.credit[at] > self.credit[chosen] {
                chosen = at;
            }
        }
        self.credit[chosen] -= total;
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Turns};

    #[test]
    fn turns_follow_the_weights_and_are_spread() {
        let kinds = [Kind::get("/a").weight(3), Kind::get("/b").weight(1), Kind::get("/c").weight(0)];
        let mut turns = Turns::new(&kinds);
        let chosen: Vec<_> = (0..8).map(|_| turns.next()).collect();
        assert_eq!(chosen, [0, 0, 1, 0, 0, 0, 1, 0]);
    }
}
