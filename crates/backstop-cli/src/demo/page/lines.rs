//! Lines of the policy, found in its text: a table's head and keys in it, with their numbers.

use serde::Serialize;

/// One line as it stands there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PolicyLine {
    pub(super) number: usize,
    pub(super) text: String,
}

/// The lines of these tables and keys, in the order of the text. What is not there is left out.
pub(super) fn find(policy: &str, wanted: &[(&str, &[&str])]) -> Vec<PolicyLine> {
    let mut keys: &[&str] = &[];
    let mut found = Vec::new();
    for (number, line) in (1..).zip(policy.lines()) {
        let head = line.strip_prefix('[').and_then(|line| line.split(']').next());
        let is_wanted = match head {
            Some(head) => {
                let table = wanted.iter().find(|(table, _)| *table == head);
                keys = table.map_or(&[], |(_, keys)| keys);
                table.is_some()
            }
            None => line.split_once('=').is_some_and(|(key, _)| keys.contains(&key.trim())),
        };
        if is_wanted {
            found.push(PolicyLine { number, text: line.to_owned() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_its_own_table_only() {
        let policy = "# a = 0\n[one]\na = 1\nb = 2\n\n[two]\na   = 3 # [one]\nab = 4\n";
        let line = |number, text: &str| PolicyLine { number, text: text.into() };
        assert_eq!(find(policy, &[("two", &["a"])]), [line(6, "[two]"), line(7, "a   = 3 # [one]")]);
        assert_eq!(find(policy, &[("one", &["b", "ab"])]), [line(2, "[one]"), line(4, "b = 2")]);
        assert_eq!(find(policy, &[("three", &["a"])]), []);
    }
}
