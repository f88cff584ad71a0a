//! Every kind of part in every position, against values written by hand.

use super::*;
use crate::failure::NotAsked;
use crate::snapshot::CopyRefusal;

const SECOND: Duration = Duration::from_secs(1);

/// A description that must be there, and two parts that may be missing.
fn page() -> Composed {
    let part = |number: u16, required| Part {
        route: RouteId(number),
        at: format!("/{number}").into(),
        required,
        origin: Origin(100 + u32::from(number)),
    };
    Composed { parts: vec![part(0, true), part(1, false), part(2, false)] }
}

fn account(outcome: Outcome, source: Source, reason: Reason, age: Option<Duration>) -> Account {
    Account { outcome, source, reason, cause: cause_of(reason), age, rule: Origin(7) }
}

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, Phase::Head, Sent::Maybe)
}

fn because(kind: FailureKind) -> Reason {
    Reason::Cause(Cause::Failed(failure(kind)))
}

/// A 2xx answer of one JSON value, with what it tells of itself.
fn value(account: Option<Account>) -> PartFacts {
    PartFacts { status: 200, content: PartContent::OneValue, account, age: None }
}

const LIVE: PartFacts = PartFacts { status: 200, content: PartContent::OneValue, account: None, age: None };

fn copy(seconds: u32) -> PartFacts {
    let reason = because(FailureKind::Reset);
    value(Some(account(Outcome::Fallback, Source::Snapshot, reason, Some(SECOND * seconds))))
}

fn refused(reason: Reason) -> PartFacts {
    let account = account(Outcome::Rejected, Source::None, reason, None);
    PartFacts { status: 503, content: PartContent::OneValue, account: Some(account), age: None }
}

fn set(numbers: &[usize]) -> PartSet {
    let mut set = PartSet::default();
    numbers.iter().for_each(|number| set.insert(*number));
    set
}

/// What comes of these parts, in this order of arrival; a part that never comes is `None`.
fn ending(order: &[usize], parts: [Option<PartFacts>; 3]) -> Ending {
    let (rules, mut gathered) = (page(), Gathered::default());
    for &number in order {
        let Some(facts) = parts[number] else { continue };
        if let Some(ending) = gathered.arrive(&rules, number, facts) {
            return ending;
        }
    }
    gathered.time_up(&rules)
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Whatever part comes first: placed, omitted, outcome, source, reason and age in seconds.
#[track_caller]
fn whole(
    parts: [Option<PartFacts>; 3],
    placed: &[usize],
    omitted: &[usize],
    words: (&str, &str, &str),
    age: Option<u64>,
) {
    for order in ORDERS {
        let Ending::Whole { placed: stands, omitted: named, account } = ending(&order, parts) else {
            panic!("{order:?}: {:?}", ending(&order, parts));
        };
        assert_eq!((stands, named), (set(placed), set(omitted)), "{order:?}");
        let told = (account.outcome.token(), account.source.token(), account.reason.token());
        assert_eq!(told, words, "{order:?}");
        assert_eq!(account.age.map(|age| age.as_secs()), age, "{order:?}");
    }
}

#[test]
fn it_is_normal_only_if_every_part_is() {
    whole([Some(LIVE); 3], &[0, 1, 2], &[], ("normal", "primary", "none"), None);
    let reset = ("fallback", "snapshot", "reset");
    whole([Some(copy(30)), Some(LIVE), Some(LIVE)], &[0, 1, 2], &[], reset, Some(30));
    whole([Some(LIVE), Some(LIVE), Some(copy(5))], &[0, 1, 2], &[], reset, Some(5));
}

/// The oldest part's age, whichever part gives the reason.
#[test]
fn it_is_as_old_as_its_oldest_part() {
    let reset = ("fallback", "snapshot", "reset");
    whole([Some(copy(3)), Some(copy(30)), Some(copy(29))], &[0, 1, 2], &[], reset, Some(30));
    whole(
        [Some(LIVE), Some(refused(Reason::Capacity(Scope::Route))), Some(copy(9))],
        &[0, 2],
        &[1],
        ("fallback", "omitted", "capacity"),
        Some(9),
    );
    // A normal part may have an age too, a shared cache's: it is no reason for a mark, and counts where there is one.
    let cached = PartFacts { age: Some(SECOND * 50), ..LIVE };
    whole([Some(cached), Some(copy(9)), Some(LIVE)], &[0, 1, 2], &[], reset, Some(50));
    whole([Some(cached), Some(LIVE), Some(LIVE)], &[0, 1, 2], &[], ("normal", "primary", "none"), None);
}

/// Slow, refused, failing, broken off, too large, without room, no part at all: each left out, for its own reason.
#[test]
fn an_optional_part_that_does_not_fit_is_left_out() {
    let other = |status, content| PartFacts { status, content, account: None, age: None };
    let failed = account(Outcome::Failed, Source::Primary, Reason::Incorrect, None);
    let not_asked = Reason::Cause(Cause::NotAsked(NotAsked::BreakerOpen));
    let table: [(PartFacts, &str); 13] = [
        (refused(Reason::Capacity(Scope::Route)), "capacity"),
        (refused(Reason::Copy(CopyRefusal::Missing)), "missing"),
        (refused(not_asked), "breaker_open"),
        (other(200, PartContent::BrokenOff(failure(FailureKind::Incomplete))), "incomplete"),
        (other(200, PartContent::Other), "incorrect"),
        (other(200, PartContent::TooLarge), "incorrect"),
        (other(200, PartContent::NoRoom), "capacity"),
        (other(204, PartContent::Other), "incorrect"),
        (other(302, PartContent::OneValue), "incorrect"),
        (other(304, PartContent::Other), "incorrect"),
        (other(404, PartContent::OneValue), "incorrect"),
        (other(401, PartContent::Other), "incorrect"),
        (value(Some(failed)), "incorrect"),
    ];
    for (facts, reason) in table {
        whole([Some(LIVE), Some(facts), Some(LIVE)], &[0, 2], &[1], ("fallback", "omitted", reason), None);
    }
    whole([Some(LIVE), None, Some(LIVE)], &[0, 2], &[1], ("fallback", "omitted", "read_timeout"), None);
    whole([Some(LIVE), None, None], &[0], &[1, 2], ("fallback", "omitted", "read_timeout"), None);
}

/// What the part's own route says for leaving it out stands in its place, and is named.
#[test]
fn a_part_that_its_own_route_leaves_out_is_named_and_placed() {
    let reason = because(FailureKind::Connect);
    let own = value(Some(account(Outcome::Fallback, Source::Omitted, reason, None)));
    whole([Some(LIVE), Some(own), Some(LIVE)], &[0, 1, 2], &[1], ("fallback", "omitted", "connect"), None);
    let prepared = value(Some(account(Outcome::Fallback, Source::Prepared, reason, None)));
    let words = ("fallback", "prepared", "connect");
    whole([Some(LIVE), Some(prepared), Some(LIVE)], &[0, 1, 2], &[], words, None);
}

/// Required parts before optional ones, then the policy's order; not who came first.
#[test]
fn the_first_part_that_is_not_normal_gives_the_reason() {
    let full = refused(Reason::Capacity(Scope::Route));
    let late = value(Some(account(
        Outcome::Fallback,
        Source::Snapshot,
        because(FailureKind::ReadTimeout),
        Some(SECOND),
    )));
    whole([Some(LIVE), Some(full), None], &[0], &[1, 2], ("fallback", "omitted", "capacity"), None);
    whole([Some(LIVE), None, Some(full)], &[0], &[1, 2], ("fallback", "omitted", "read_timeout"), None);
    let words = ("fallback", "snapshot", "read_timeout");
    whole([Some(late), Some(full), Some(LIVE)], &[0, 2], &[1], words, Some(1));
}

/// A wrong schema is not unavailability: it passes in its place, and the whole says `failed`.
#[test]
fn a_required_part_that_breaks_its_rules_stands_there_and_fails_the_whole() {
    let incorrect = value(Some(account(Outcome::Failed, Source::Primary, Reason::Incorrect, None)));
    let words = ("failed", "primary", "incorrect");
    whole([Some(incorrect), Some(copy(9)), Some(LIVE)], &[0, 1, 2], &[], words, Some(9));
    whole([Some(incorrect), None, Some(LIVE)], &[0, 2], &[1], words, None);
}

/// It ends the whole the moment it comes, whatever else is still under way.
#[test]
fn a_required_part_that_does_not_fit_is_the_answer() {
    let missing = Reason::Copy(CopyRefusal::Missing);
    let failed_500 = account(Outcome::Failed, Source::Primary, Reason::ServerError, None);
    let other = |status, content, account| PartFacts { status, content, account, age: None };
    let passes = [
        (refused(missing), "rejected", "missing"),
        (refused(Reason::Capacity(Scope::Route)), "rejected", "capacity"),
        (other(500, PartContent::Other, Some(failed_500)), "failed", "server_error"),
        (other(404, PartContent::OneValue, None), "normal", "none"),
        (other(401, PartContent::Other, None), "normal", "none"),
    ];
    for (facts, outcome, reason) in passes {
        let ended = Gathered::default().arrive(&page(), 0, facts);
        let Some(Ending::Part { number: 0, account }) = ended else { panic!("{facts:?}: {ended:?}") };
        assert_eq!((account.outcome.token(), account.reason.token()), (outcome, reason));
    }
    let cut = failure(FailureKind::Incomplete);
    let refuses = [
        (other(200, PartContent::Other, None), "incorrect"),
        (other(200, PartContent::TooLarge, None), "incorrect"),
        (other(404, PartContent::TooLarge, None), "incorrect"),
        (other(204, PartContent::Other, None), "incorrect"),
        (other(302, PartContent::Other, None), "incorrect"),
        (other(200, PartContent::NoRoom, None), "capacity"),
        (other(200, PartContent::BrokenOff(cut), None), "incomplete"),
        (other(404, PartContent::BrokenOff(cut), None), "incomplete"),
    ];
    for (facts, expected) in refuses {
        let ended = Gathered::default().arrive(&page(), 0, facts);
        let Some(Ending::Refused { reason, rule }) = ended else { panic!("{facts:?}: {ended:?}") };
        assert_eq!((reason.token(), rule), (expected, Origin(100)), "{facts:?}");
    }
    let late = Gathered::default().time_up(&page());
    assert!(matches!(late, Ending::Refused { reason, .. } if reason.token() == "read_timeout"), "{late:?}");
}

/// A part that comes twice, or that the rules do not have, changes nothing.
#[test]
fn a_part_counts_once() {
    let (rules, mut gathered) = (page(), Gathered::default());
    assert_eq!(gathered.arrive(&rules, 1, copy(1)), None);
    assert_eq!(gathered.arrive(&rules, 1, refused(Reason::Draining)), None);
    assert_eq!(gathered.arrive(&rules, 3, LIVE), None);
    assert_eq!(gathered.arrive(&rules, 2, LIVE), None);
    let Some(Ending::Whole { placed, account, .. }) = gathered.arrive(&rules, 0, LIVE) else {
        panic!("all parts are there")
    };
    assert_eq!((placed, account.reason.token()), (set(&[0, 1, 2]), "reset"));
}

#[test]
fn a_set_holds_its_sixteen_numbers_and_no_other() {
    let mut all = PartSet::default();
    assert!(all.is_empty());
    (0..20).for_each(|number| all.insert(number));
    for number in 0..40 {
        assert_eq!(all.contains(number), number < MOST_PARTS, "{number}");
    }
}
