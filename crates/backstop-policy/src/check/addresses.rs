//! Where the process listens, whom it calls and whom it believes.
//!
//! `[::]` is every address, those of IPv4 included (a socket of IPv6 takes both unless told otherwise), and `0.0.0.0`
//! every one of IPv4. Which other addresses a machine has is not known here.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use crate::check::View;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::value::{Address, IpRange, Listen, Url};

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    twice_in_a_list(view, cx);
    let Some(gateway) = view.gateway() else { return };
    let listen = gateway.listen.iter().flat_map(|listen| &listen.value.0);
    let mut own: Vec<_> = listen
        .chain(&gateway.admin)
        .map(|at| Own { address: at.value.0, bytes: Some(at.bytes.clone()) })
        .collect();
    if gateway.admin.is_none() {
        own.insert(0, Own { address: default::ADMIN, bytes: None });
    }
    same_address(&own, cx);
    calls_itself(view, &own, cx);
    if let Some(admin) = &gateway.admin {
        exposed(admin, cx);
    }
    for range in gateway.trusted.iter().flat_map(|trusted| &trusted.value.0) {
        trusts_everyone(range, cx);
    }
}

/// An address of this process.
#[derive(Debug)]
struct Own {
    address: SocketAddr,
    /// Where it was written; the admin address has a default.
    bytes: Option<Range<usize>>,
}

fn same_address(own: &[Own], cx: &mut Context<'_>) {
    for (index, later) in own.iter().enumerate() {
        let mut earlier = own.iter().take(index);
        let shares =
            |first: &&Own| covers(first.address, later.address) || covers(later.address, first.address);
        let (Some(first), Some(bytes)) = (earlier.find(shares), &later.bytes) else { continue };
        let message = if is_same(first.address, later.address) {
            format!("`{}` is used twice", later.address)
        } else if covers(first.address, later.address) {
            format!("`{}` contains `{}`", first.address, later.address)
        } else {
            format!("`{}` contains `{}`", later.address, first.address)
        };
        let finding = Finding::new(Code::SameAddress, bytes.clone(), message);
        cx.report(match &first.bytes {
            Some(first) => finding
                .related(first.clone(), "first used here")
                .help("every listener, the admin one included, needs an address of its own"),
            None => finding
                .help(format!("metrics are served on `{}` unless `admin` says otherwise", first.address)),
        });
    }
}

fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    let scope = |address| match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    one.port() == other.port()
        && one.port() != 0
        && one.ip().to_canonical() == other.ip().to_canonical()
        && scope(one) == scope(other)
}

/// Whether whoever listens on `wide` takes what is sent to `narrow`. The system chooses a port for 0, never the same twice.
fn covers(wide: SocketAddr, narrow: SocketAddr) -> bool {
    let takes_family = match wide.ip() {
        IpAddr::V4(_) => narrow.ip().to_canonical().is_ipv4(),
        IpAddr::V6(_) => true,
    };
    is_same(wide, narrow)
        || (wide.ip().is_unspecified() && takes_family && wide.port() == narrow.port() && wide.port() != 0)
}

/// Every request would come back until all permits are taken.
fn calls_itself(view: &View<'_>, own: &[Own], cx: &mut Context<'_>) {
    let of_dependencies = view
        .dependencies()
        .filter_map(|dependency| dependency.table.value.url.as_ref())
        .flat_map(|url| &url.value.0)
        .map(|at| (&at.value.0, &at.bytes));
    let of_authorizers = view
        .authorizers()
        .filter_map(|authorizer| authorizer.table.value.url.as_ref())
        .flat_map(|url| &url.value.0)
        .map(|at| (&at.value.address, &at.bytes));
    let of_issuers = view
        .authorizers()
        .filter_map(|authorizer| authorizer.table.value.jwt.as_ref()?.value.keys.as_ref())
        .map(|at| (&at.value.address, &at.bytes));
    for (address, bytes) in of_dependencies.chain(of_authorizers).chain(of_issuers) {
        let targets = targets(address);
        let reaches = |own: SocketAddr, target: SocketAddr| {
            is_same(own, target) || (target.ip().is_loopback() && covers(own, target))
        };
        let mut own = own.iter();
        let Some(own) = own.find(|own| targets.iter().any(|&target| reaches(own.address, target))) else {
            continue;
        };
        let message = format!("`{address}` is the gateway itself");
        let finding = Finding::new(Code::OwnAddress, bytes.clone(), message);
        cx.report(match &own.bytes {
            Some(bytes) => finding
                .related(bytes.clone(), "it listens here")
                .help("name where the dependency listens; a request would come back and be forwarded again"),
            None => {
                finding.help(format!("metrics are served on `{}` unless `admin` says otherwise", own.address))
            }
        });
    }
}

/// Where an address surely leads, in whatever spelling it is written. Names are not resolved here: two of them are the
/// same only if they are the same word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Destination<'a> {
    Ip(SocketAddr),
    Name(&'a Address),
}

pub(super) fn destinations(address: &Address) -> Vec<Destination<'_>> {
    let targets = targets(address);
    if targets.is_empty() {
        return vec![Destination::Name(address)];
    }
    targets.into_iter().map(Destination::Ip).collect()
}

/// One address is written twice in the list of one dependency.
fn twice_in_a_list(view: &View<'_>, cx: &mut Context<'_>) {
    for url in view.dependencies().filter_map(|dependency| dependency.table.value.url.as_ref()) {
        let mut seen = HashMap::new();
        for later in &url.value.0 {
            let destinations = destinations(&later.value.0);
            let first = destinations.iter().find_map(|destination| seen.get(destination)).copied();
            let Some(first): Option<&At<Url>> = first else {
                seen.extend(destinations.into_iter().map(|destination| (destination, later)));
                continue;
            };
            let message = if first.value.0 == later.value.0 {
                format!("`{}` stands twice in this list", later.value.0)
            } else {
                format!("`{}` and `{}` are one address", first.value.0, later.value.0)
            };
            cx.report(
                Finding::new(Code::Repeated, later.bytes.clone(), message)
                    .related(first.bytes.clone(), "first here"),
            );
        }
    }
}

/// The IP addresses that this one surely leads to. Other names are not resolved here.
fn targets(address: &Address) -> Vec<SocketAddr> {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let at = |ip| SocketAddr::new(ip, address.port);
    match address.host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        // Connecting to the unspecified address reaches this machine.
        Ok(ip) if ip.is_unspecified() => vec![at(if ip.is_ipv4() { v4 } else { v6 })],
        Ok(ip) => vec![at(ip)],
        // RFC 6761 section 6.3.
        Err(_) if *address.host == *"localhost" || address.host.ends_with(".localhost") => {
            vec![at(v4), at(v6)]
        }
        Err(_) => Vec::new(),
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
