//! Room for copies and for answers that are held back.

use crate::check::View;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::Context;
use crate::value::size_text as shown;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    let written = view.gateway().and_then(|gateway| gateway.buffer_memory.as_ref());
    let memory = written.map_or(default::BUFFER_MEMORY, |memory| memory.value.0);
    let snapshots = view.store().and_then(|store| store.snapshots.as_ref());
    let kept = snapshots.map(|snapshots| &snapshots.value);
    let room = |size: Option<u64>, default| size.unwrap_or(default);
    let in_memory =
        room(kept.and_then(|kept| kept.memory.as_ref()).map(|size| size.value.0), default::STORE_MEMORY);
    let on_disk =
        room(kept.and_then(|kept| kept.disk.as_ref()).map(|size| size.value.0), default::STORE_DISK);
    let largest = in_memory.max(on_disk);

    for route in view.routes() {
        let Some(read) = route.kept() else { continue };
        let buffer = read.buffer.as_ref().map_or(default::BUFFER, |buffer| buffer.value.0);
        let bytes = read.buffer.as_ref().map_or(route.entry.at.bytes.clone(), |buffer| buffer.bytes.clone());
        let name = route.text();
        if buffer > memory {
            let message = format!(
                "one answer of `{name}` may take {}, all together only {}",
                shown(buffer),
                shown(memory)
            );
            let finding = Finding::new(Code::NoRoom, bytes.clone(), message)
                .help("lower the route's `buffer` or raise the gateway's `buffer_memory`");
            cx.report(match written {
                Some(written) => finding.related(written.bytes.clone(), "for all answers that are held back"),
                None => finding,
            });
        }
        if buffer > largest {
            let message = format!(
                "one copy of `{name}` may take {}, but there is room for {} only",
                shown(buffer),
                shown(largest)
            );
            let finding =
                Finding::new(Code::NoRoom, bytes, message).help("give `snapshots` more memory or disk");
            cx.report(match snapshots {
                Some(snapshots) => finding.related(snapshots.bytes.clone(), "room for all copies"),
                None => finding,
            });
        }
    }
}
