//! `backstop ledger bench`: what it says, what it leaves behind, and what it says of a folder that is none.

use std::fs;

use crate::support::gateway::{folder, output};

/// The figures are the machine's; that there are some, and for whom, is told in full. A whole operation takes two commits, so
/// one client alone gets through at least one in the second that is measured.
#[test]
fn it_measures_and_leaves_nothing_behind() {
    let folder = folder();
    fs::write(folder.join("ledger.sqlite"), "somebody's own").unwrap();
    let (status, told, errors) = output(&["ledger", "bench", "--seconds", "1", "."], &folder);
    assert!(status.success(), "{errors}");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 5, "{told}");
    assert!(lines[0].starts_with("flush ") && lines[0].contains(" ms for a page of 4 KiB"), "{told}");
    for (line, clients) in lines[2..].iter().zip(["1", "8", "64"]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [count, per_second, p50, "ms", p99, "ms"] = words[..] else { panic!("{line}") };
        assert_eq!(count, clients);
        let [per_second, p50, p99]: [f64; 3] = [per_second, p50, p99].map(|figure| figure.parse().unwrap());
        assert!(per_second >= 1.0 && p50 > 0.0 && p50 <= p99, "{line}");
    }
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ledger.sqlite"]);
    assert_eq!(fs::read_to_string(folder.join("ledger.sqlite")).unwrap(), "somebody's own");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_folder_that_is_none_is_told() {
    let folder = folder();
    let (status, told, errors) = output(&["ledger", "bench", "nowhere"], &folder);
    assert_eq!((status.code(), told.as_str()), (Some(2), ""));
    assert!(errors.starts_with("error: nowhere: a folder to measure in is needed\n"), "{errors}");
    assert!(errors.contains("hint: name the folder that `path` of `[store]` names"), "{errors}");
    fs::remove_dir_all(&folder).unwrap();
}
