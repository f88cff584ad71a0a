use super::*;

const NOW: Mono = Mono::from_ns(1_000_000_000_000);

fn at(millis: u64) -> Mono {
    NOW.after(Duration::from_millis(millis))
}

fn open(link: &mut Link<u8>, now: Mono) -> Rc<u8> {
    assert!(matches!(link.find(now), Found::Open(_)));
    let connection = Rc::new(0);
    link.opened(Ok(Rc::clone(&connection)), now);
    connection
}

#[test]
fn one_opens_and_the_others_wait_for_it() {
    let mut link = Link::new(1);
    assert!(matches!(link.find(NOW), Found::Open(0)));
    assert!(matches!(link.find(NOW), Found::Wait(0)));
    assert!(link.outcome(0).is_none());
    let connection = Rc::new(7_u8);
    link.opened(Ok(Rc::clone(&connection)), NOW);
    assert!(matches!(link.outcome(0), Some(Ok(found)) if Rc::ptr_eq(&found, &connection)));
    assert!(matches!(link.find(NOW), Found::Connection(found) if Rc::ptr_eq(&found, &connection)));
}

#[test]
fn whoever_waits_learns_why_it_failed_and_whoever_comes_then_is_refused() {
    let mut link = Link::<u8>::new(1);
    assert!(matches!(link.find(NOW), Found::Open(0)));
    link.opened(Err(CacheError::Protocol), NOW);
    assert!(matches!(link.outcome(0), Some(Err(CacheError::Protocol))));
    assert!(matches!(link.find(NOW), Found::Paused));
    assert!(matches!(link.find(at(4)), Found::Paused), "half of the first pause is certain");
    assert!(matches!(link.find(at(10)), Found::Open(1)));
}

#[test]
fn pauses_double_up_to_a_second_and_are_shortened_by_less_than_half() {
    let whole = [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000];
    for entropy in [0, 1, u64::MAX / 3, u64::MAX] {
        for (failures, whole) in (1..).zip(whole) {
            let pause = pause(failures, entropy);
            let whole = Duration::from_millis(whole);
            assert!(pause <= whole && pause > whole / 2, "{failures} {entropy}: {pause:?}");
        }
    }
    assert_eq!(pause(u32::MAX, 0), LONGEST_PAUSE);
    assert_ne!(pause(8, scrambled(1)), pause(8, scrambled(2)));
}

#[test]
fn only_an_answered_command_shortens_the_pause_again() {
    let mut link = Link::<u8>::new(0);
    let mut now = NOW;
    for _ in 0..8 {
        let connection = open(&mut link, now);
        assert!(link.ended(&connection, CacheError::Timeout, now));
        assert!(matches!(link.find(now.after(Duration::from_millis(4))), Found::Paused));
        now = now.after(LONGEST_PAUSE);
    }
    // The eighth pause was one of the longest, though each connection was opened.
    assert!(matches!(link.find(now.before(Duration::from_millis(501))), Found::Paused));
    let connection = open(&mut link, now);
    link.answered(&connection);
    assert!(link.ended(&connection, CacheError::Reset, now));
    assert!(matches!(link.find(now.after(FIRST_PAUSE)), Found::Open(_)));
}

#[test]
fn an_earlier_connection_changes_nothing_about_the_present_one() {
    let mut link = Link::<u8>::new(0);
    let first = open(&mut link, NOW);
    assert!(link.ended(&first, CacheError::Timeout, NOW));
    let second = open(&mut link, at(10));
    assert!(!link.ended(&first, CacheError::Reset, at(10)));
    link.answered(&first);
    assert_eq!(link.failures, 1);
    assert!(matches!(link.find(at(10)), Found::Connection(found) if Rc::ptr_eq(&found, &second)));
}

#[test]
fn what_is_stopped_opens_nothing_any_more() {
    let mut link = Link::<u8>::new(0);
    let connection = open(&mut link, NOW);
    assert!(link.stop().is_some_and(|stopped| Rc::ptr_eq(&stopped, &connection)));
    assert!(matches!(link.find(at(1_000_000)), Found::Paused));
}
