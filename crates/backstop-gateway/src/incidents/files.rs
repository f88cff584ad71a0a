//! Incidents on disk: one file each, and one for what is usual.

use backstop_engine::incident::{ENDED_MAX, Moment, Phase, Record, Saved};
use serde_json::Value;

use super::read;
use crate::state::Folder;
use crate::state::json::Damaged;

/// The folder of incidents, below that of everything.
const FOLDER: &str = "incidents";
/// What is usual, and how many incidents there were.
pub(super) const USUAL: &str = "incidents.json";
const EXTENSION: &str = ".json";

/// The file of one incident.
pub(super) fn name(id: &str) -> String {
    format!("{FOLDER}/{id}{EXTENSION}")
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) saved: Saved,
    /// Files of incidents that are not kept any more.
    pub(super) excess: Vec<String>,
}

/// Reads what an earlier process wrote. What is damaged is set aside and named in the log.
pub(super) fn read(folder: &Folder) -> Found {
    let mut found = Found::default();
    if let Some((begun, baseline)) = file(folder, USUAL, read::usual) {
        (found.saved.begun, found.saved.baseline) = (begun, baseline);
    }
    let names = folder.names(FOLDER);
    let mut ids: Vec<(u64, &str)> = names.iter().filter_map(|name| number(name)).collect();
    ids.sort_unstable();
    found.saved.begun = found.saved.begun.max(ids.last().map_or(0, |(number, _)| *number));
    // One more than those that have ended: the one that has not.
    let excess = ids.len().saturating_sub(ENDED_MAX + 1);
    found.excess = ids.drain(..excess).map(|(_, id)| name(id)).collect();
    let records: Vec<(Record, Moment)> =
        ids.iter().filter_map(|(_, id)| file(folder, &name(id), |value| named(value, id))).collect();
    let newest = records.len().saturating_sub(1);
    for (index, (mut record, counted_until)) in records.into_iter().enumerate() {
        if index == newest && record.phase != Phase::Ended && record.ended.is_none() {
            found.saved.last_tick = Some(counted_until);
            found.saved.current = Some(record);
            continue;
        }
        // Its end was never written: another one began after it.
        record.phase = Phase::Ended;
        record.ended.get_or_insert(counted_until);
        found.saved.ended.push(record);
    }
    let excess = found.saved.ended.len().saturating_sub(ENDED_MAX);
    found.excess.extend(found.saved.ended.drain(..excess).map(|record| name(&record.id)));
    found
}

fn named(value: &Value, id: &str) -> Result<(Record, Moment), Damaged> {
    let (record, counted_until) = read::whole(value)?;
    if *record.id == *id { Ok((record, counted_until)) } else { Err(Damaged::new("id", "name of this file")) }
}

/// The number and the identity of the incident that a file is named after.
fn number(name: &str) -> Option<(u64, &str)> {
    let id = name.strip_suffix(EXTENSION)?;
    let (date, number) = id.split_once('-')?;
    let is_date = date.len() == 16 && date.bytes().all(|byte| byte.is_ascii_digit() || b"TZ".contains(&byte));
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_date && is_number).then_some(())?;
    Some((number.parse().ok()?, id))
}

/// One file, if it is there and whole.
fn file<T>(folder: &Folder, name: &str, read: impl Fn(&Value) -> Result<T, Damaged>) -> Option<T> {
    folder.load(name, |text| {
        let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        read(&value).map_err(|error| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::super::write;
    use super::*;

    fn record(number: u64, phase: Phase) -> Record {
        let text = format!(
            r#"{{"version":1,"id":"20260301T000000Z-{number}","phase":"degraded","began":M,"detected":M,"counted_until":M,
            "requests":C,"functions":[],"dependencies":[],"reasons":{{}},"signals":{{}},"tracked_effects":0,"restarts":0,
            "timeline":{{"first":[],"left_out":0,"last":[]}}}}"#
        );
        let moment = r#"{"unix_ns":5,"boot_ns":6,"boot":"07"}"#;
        let counts = r#"{"normal":1,"fallback":0,"rejected":0,"failed":0,"abandoned":0}"#;
        let text = text.replace(":M", &format!(":{moment}")).replace(":C", &format!(":{counts}"));
        let (mut record, at) = read::whole(&serde_json::from_str(&text).unwrap()).unwrap();
        record.phase = phase;
        record.ended = (phase == Phase::Ended).then_some(at);
        record
    }

    fn put(folder: &mut Folder, record: &Record) {
        let text = write::whole(record, &record.began).to_string();
        folder.write(&name(&record.id), text.as_bytes()).unwrap();
    }

    /// Numbers are compared as numbers. 33 have ended, of which the first is one too many; the last one goes on.
    #[test]
    fn the_newest_are_taken_up_and_the_last_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(place.path());
        for number in 90..123 {
            put(&mut folder, &record(number, Phase::Ended));
        }
        put(&mut folder, &record(123, Phase::Recovering));
        folder.write("incidents/notes.json", b"mine").unwrap();
        folder.write("incidents/20260301T000000Z-1.txt", b"mine").unwrap();
        let found = read(&folder);
        assert_eq!(found.excess, ["incidents/20260301T000000Z-90.json"]);
        let ids: Vec<u64> =
            found.saved.ended.iter().map(|one| number(&format!("{}.json", one.id)).unwrap().0).collect();
        assert_eq!(ids, (91..123).collect::<Vec<_>>());
        let current = found.saved.current.unwrap();
        assert_eq!((&*current.id, current.phase), ("20260301T000000Z-123", Phase::Recovering));
        assert_eq!(found.saved.last_tick, Some(current.began));
        assert_eq!(found.saved.begun, 123, "known from the names alone");
        assert_eq!(folder.names(FOLDER).len(), 36, "what is not ours stays");
    }

    #[test]
    fn one_whose_end_was_lost_has_ended() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(place.path());
        put(&mut folder, &record(1, Phase::Degraded));
        put(&mut folder, &record(2, Phase::Ended));
        let found = read(&folder);
        assert_eq!(found.saved.current, None);
        let ended: Vec<_> = found.saved.ended.iter().map(|one| (one.phase, one.ended)).collect();
        assert_eq!(ended, [(Phase::Ended, Some(record(1, Phase::Ended).began)); 2]);
    }

    #[test]
    fn damaged_files_are_set_aside_and_the_others_are_read() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(place.path());
        put(&mut folder, &record(1, Phase::Ended));
        for (id, text) in [
            (2, "{".to_owned()),
            (3, "[]".into()),
            (4, write::whole(&record(1, Phase::Ended), &Moment::default()).to_string()),
        ] {
            folder.write(&name(&format!("20260301T000000Z-{id}")), text.as_bytes()).unwrap();
        }
        folder.write(USUAL, b"{\"version\":2}").unwrap();
        let found = read(&folder);
        assert_eq!((found.saved.ended.len(), found.saved.begun), (1, 4));
        let mut names = folder.names(FOLDER);
        names.sort_unstable();
        let aside = |id| format!("20260301T000000Z-{id}.json.damaged");
        assert_eq!(names, ["20260301T000000Z-1.json".into(), aside(2), aside(3), aside(4)]);
        assert!(folder.names("").contains(&format!("{USUAL}.damaged")));
    }
}
