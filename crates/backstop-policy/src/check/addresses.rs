//! Where the process listens and whom it believes.

use crate::check::View;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::value::{IpRange, Listen};

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    let Some(gateway) = view.gateway() else { return };
    let listen = gateway.listen.iter().flat_map(|listen| &listen.value.0);
    same_address(&listen.chain(&gateway.admin).collect::<Vec<_>>(), cx);
    if let Some(admin) = &gateway.admin {
        exposed(admin, cx);
    }
    for range in gateway.trusted.iter().flat_map(|trusted| &trusted.value.0) {
        trusts_everyone(range, cx);
    }
}

fn same_address(addresses: &[&At<Listen>], cx: &mut Context<'_>) {
    for (index, later) in addresses.iter().enumerate() {
        let mut earlier = addresses.iter().take(index);
        if let Some(first) = earlier.find(|first| first.value == later.value && later.value.0.port() != 0) {
            let message = format!("`{}` is used twice", later.value.0);
            cx.report(
                Finding::new(Code::SameAddress, later.bytes.clone(), message)
                    .related(first.bytes.clone(), "first used here")
                    .help("every listener, the admin one included, needs an address of its own"),
            );
        }
    }
}

fn exposed(admin: &At<Listen>, cx: &mut Context<'_>) {
    if !admin.value.0.ip().is_loopback() {
        cx.report(
            Finding::new(
                Code::AdminExposed,
                admin.bytes.clone(),
                "the admin address is reachable from other machines",
            )
            .help("keep it on 127.0.0.1, or on a network that only operators and Prometheus reach"),
        );
    }
}

fn trusts_everyone(range: &At<IpRange>, cx: &mut Context<'_>) {
    if range.value.prefix == 0 {
        let message = "every peer's `X-Forwarded-*` fields are believed";
        cx.report(
            Finding::new(Code::TrustsEveryone, range.bytes.clone(), message)
                .help("name the proxies in front of this one; anyone else can write what they like there"),
        );
    }
}
