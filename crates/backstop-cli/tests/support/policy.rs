//! Policies for tests: the shop's, with parts replaced.

use std::net::SocketAddr;

/// A policy file in the making. Ports are 0: the gateway tells which it got.
#[derive(Clone, Debug)]
pub struct Policy {
    gateway: Vec<String>,
    store: Vec<String>,
    rest: Vec<String>,
}

impl Policy {
    /// A gateway without routes, copies in memory only.
    pub fn empty() -> Self {
        Self {
            gateway: [
                "name = \"edge\"",
                "listen = \"127.0.0.1:0\"",
                "admin = \"127.0.0.1:0\"",
                "threads = 2",
            ]
            .map(String::from)
            .to_vec(),
            store: vec!["snapshots = { memory = \"16 MiB\", disk = \"0 B\" }".into()],
            rest: Vec::new(),
        }
    }

    /// One dependency `catalog` at the given address and the route `description`: a public read of `/p/{id}` in es, en
    /// and de with tenant, 60 s, deadline 300 ms, in_flight 4; PUT and DELETE of the same path; a catch-all.
    pub fn shop(origin: SocketAddr) -> Self {
        Self::empty()
            .dependency("catalog", origin, "")
            .route("description.public_read", &Self::description(""))
            .route(
                "write.direct",
                "match = [\"PUT /p/{id}\", \"DELETE /p/{id}\", \"POST /p/{id}\"]\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4",
            )
            .route("rest.direct", "match = \"*\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 4")
    }

    /// The fields of the route `description`; those given replace the defaults of the same name.
    pub fn description(replace: &str) -> String {
        let defaults = [
            "match = \"GET /p/{id}\"",
            "dependency = \"catalog\"",
            "deadline = \"300ms\"",
            "in_flight = 4",
            "languages = [\"es\", \"en\", \"de\"]",
            "key = [\"path.id\", \"language\", \"header.x-tenant\"]",
            "max_age = \"60s\"",
            "correct = { type = \"application/json\", has = [\"/id\", \"/text\"], echo = { \"/lang\" = \"language\" } }",
        ];
        replaced(defaults, replace)
    }

    /// A line of `[gateway]`; it replaces one of the same key.
    pub fn gateway(mut self, line: &str) -> Self {
        replace(&mut self.gateway, line);
        self
    }

    /// Without a line of `[gateway]`.
    pub fn without(mut self, key: &str) -> Self {
        self.gateway.retain(|line| self::key(line) != key);
        self
    }

    /// A line of `[store]`; it replaces one of the same key.
    pub fn store(mut self, line: &str) -> Self {
        replace(&mut self.store, line);
        self
    }

    /// A dependency; `more` are further lines.
    pub fn dependency(mut self, name: &str, origin: SocketAddr, more: &str) -> Self {
        self.rest.push(format!("[dependency.{name}]\nurl = \"http://{origin}\"\n{more}\n"));
        self
    }

    /// Any table and its lines.
    pub fn table(mut self, name: &str, lines: &str) -> Self {
        self.rest.push(format!("[{name}]\n{lines}\n"));
        self
    }

    /// A table `[route.NAME.CLASS]` and its lines.
    pub fn route(mut self, name_and_class: &str, lines: &str) -> Self {
        self.rest.push(format!("[route.{name_and_class}]\n{lines}\n"));
        self
    }

    /// Changes the text of a table that is there.
    pub fn replace_table(mut self, name: &str, change: impl Fn(&str) -> String) -> Self {
        let header = format!("[{name}]\n");
        for table in self.rest.iter_mut().filter(|table| table.starts_with(&header)) {
            *table = change(table.as_str().trim_end()) + "\n";
        }
        self
    }

    /// Replaces a route's whole table.
    pub fn replace_route(mut self, name_and_class: &str, lines: &str) -> Self {
        let header = format!("[route.{name_and_class}]\n");
        self.rest.retain(|table| !table.starts_with(&header));
        self.route(name_and_class, lines)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut gateway = self.gateway.clone();
        if !gateway.iter().any(|line| line.starts_with("in_flight")) {
            gateway.push("in_flight = 1000".into());
        }
        format!(
            "[gateway]\n{}\n\n[store]\n{}\n\n{}",
            gateway.join("\n"),
            self.store.join("\n"),
            self.rest.join("\n")
        )
    }
}

/// These lines, those of the same keys in their place, and the rest of those. A key set to nothing ("languages =") is left out.
pub fn replaced<'a>(lines: impl IntoIterator<Item = &'a str>, others: &'a str) -> String {
    let replaced: Vec<&str> = others.lines().map(key).collect();
    let kept = lines.into_iter().filter(|line| !replaced.contains(&key(line)));
    let set = others.lines().filter(|line| !line.trim_end().ends_with('='));
    kept.chain(set).collect::<Vec<_>>().join("\n")
}

fn key(line: &str) -> &str {
    line.split('=').next().unwrap_or_default().trim()
}

fn replace(lines: &mut Vec<String>, line: &str) {
    lines.retain(|known| key(known) != key(line));
    lines.push(line.to_owned());
}
