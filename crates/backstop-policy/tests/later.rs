//! What later versions will have is refused by name, and what stands elsewhere is shown its place.

mod support;

use backstop_policy::Code;
use support::{diagnosed, refused};

#[test]
fn everything_of_a_later_version_is_named_as_such() {
    refused("[dependency.catalog]\nurl = \"http://x\"\ntls = {}\n", Code::NotAvailable);
    let authorizer = "[authorizer.sessions]\nurl = \"http://127.0.0.1:9003\"\nallow = { header = \"x-allowed\" }\ntimeout = \"1ms\"\nin_flight = 1\ntls = {}\n";
    refused(authorizer, Code::NotAvailable);
    refused("[gateway]\nlisten = \"[::1]:1\"\nin_flight = 1000\ntls = {}\n", Code::NotAvailable);
    for listen in ["{ tls = {} }", "[{ address = \"[::1]:1\", tls = {} }]", "[\"[::1]:1\", { tls = 1 }]"] {
        refused(&format!("[gateway]\nlisten = {listen}\nin_flight = 1000\n"), Code::NotAvailable);
    }
    refused("[[gateway.listen]]\ntls = {}\n[gateway]\nin_flight = 1000\n", Code::NotAvailable);
    refused("[gateway]\nlisten = { address = \"[::1]:1\" }\nin_flight = 1000\n", Code::WrongType);
    refused("[dependency.catalog]\nurl = { address = \"http://x\", tls = {} }\n", Code::NotAvailable);
    refused("[store]\nledger = \"postgresql\"\n", Code::NotAvailable);
}

/// A cache is part of a route, in every spelling of a table of its own.
#[test]
fn a_cache_with_a_table_of_its_own_is_shown_to_its_route() {
    for table in ["[cache.reviews]\nurl = \"redis://cache\"\n", "[cache]\nurl = \"redis://cache\"\n"] {
        let (_, diagnostics) = diagnosed(table);
        let found: Vec<_> = diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(found, [Code::UnknownKey], "{table}");
        let help = diagnostics[0].help.clone().unwrap_or_default();
        assert!(help.contains("[route.NAME.cached_read]") && help.contains("cache = { url ="), "{help}");
    }
}
