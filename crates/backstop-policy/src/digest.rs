//! What evidence is bound to: a digest of what the policy says of a dependency and of the resources that it uses.
//!
//! Not of the whole file: a comment or another route's deadline changes nothing of what a dependency bears, and evidence that
//! any edit makes void is evidence that nobody has in the incident.

use std::fmt::Write as _;

use backstop_engine::policy::DependencyId;
use sha2::{Digest as _, Sha256};

use crate::load::Loaded;
use crate::value::Address;

/// What was measured, as far as a policy knows it.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub(crate) name: &'a str,
    pub(crate) addresses: Vec<&'a Address>,
    pub(crate) connections: u32,
    /// Name, places and rate.
    pub(crate) resources: Vec<(&'a str, Option<u32>, Option<u64>)>,
}

impl Measured<'_> {
    pub(crate) fn digest(mut self) -> [u8; 32] {
        self.resources.sort_unstable();
        // A name holds no blank and an address neither, so no two policies are spelt alike.
        let mut text = format!("dependency {} {}\n", self.name, self.connections);
        for address in &self.addresses {
            let _infallible = writeln!(text, "address {} {}", address.host, address.port);
        }
        let number =
            |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
        for (name, places, rate) in &self.resources {
            let _infallible =
                writeln!(text, "resource {name} {} {}", number(places.map(u64::from)), number(*rate));
        }
        Sha256::digest(text.as_bytes()).into()
    }
}

/// In hexadecimal digits.
pub(crate) fn hexadecimal(digest: &[u8; 32]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

impl Loaded {
    /// The digest that evidence about this dependency is bound to, in hexadecimal digits.
    pub fn digest_of(&self, dependency: DependencyId) -> String {
        let index = usize::from(dependency.0);
        let (Some(settings), Some(rules)) =
            (self.dependencies.get(index), self.policy.dependencies.get(index))
        else {
            return String::new();
        };
        let resources = rules.uses.iter().filter_map(|used| self.policy.resources.get(usize::from(used.0)));
        let measured = Measured {
            name: &settings.name,
            addresses: settings.addresses.iter().collect(),
            connections: settings.connections,
            resources: resources
                .map(|resource| (&*resource.name, resource.concurrency, resource.rate))
                .collect(),
        };
        hexadecimal(&measured.digest())
    }
}
