use super::*;
use crate::testing::headers;

#[test]
fn what_a_failing_disk_shows_again_and_again_is_queued_once() {
    let queue = Queue::new(&StoreOptions::new(""));
    queue.delete(&[Gone { id: 7, site: 1 }; 2]);
    for _ in 0..100 {
        queue.delete_found(&[9, 8, 7]);
    }
    let deletes = queue.next_work(None, 0).deletes;
    assert_eq!(deletes, [7, 8, 9]);
    assert!(queue.may_hold_unknown(Some(2)), "nobody knows of what they are");
    queue.left();
    assert!(!queue.may_hold_unknown(None));
}

/// The writer takes the first deletion, and the second comes while it is being made durable.
#[test]
fn what_comes_while_another_deletion_becomes_durable_is_still_leaving() {
    let queue = Queue::new(&StoreOptions::new(""));
    let gone = |site| Gone { id: site, site };
    queue.delete(&[gone(1)]);
    drop(queue.next_work(None, 0));
    drop(queue.erase(&[gone(2)]));
    let knows = || [1, 2, 3].map(|site| queue.may_hold_unknown(Some(site)));
    assert_eq!(knows(), [true, true, false]);
    queue.left();
    assert_eq!(knows(), [false, true, false]);
    drop(queue.next_work(None, 0));
    queue.evicted(Some(3));
    assert_eq!(knows(), [false, true, true]);
    queue.left();
    assert_eq!(knows(), [false; 3]);
    let undecided = queue.undecided();
    assert_eq!(knows(), [true; 3]);
    drop(undecided);
    drop(queue.erase_route("r".into(), false));
    assert_eq!(knows(), [false; 3], "it had no copies");
    drop(queue.erase_route("r".into(), true));
    assert_eq!(knows(), [true; 3]);
}

#[test]
fn reads_that_wait_are_bounded_in_bytes_too() {
    let queue = Queue::new(&StoreOptions { read_queue_len: usize::MAX, ..StoreOptions::new("") });
    let large = headers(&[("etag", &"x".repeat(30_000))]);
    let put = Put { id: 1, shard: 0, place: 0 };
    let renew = || {
        let purpose = Purpose::Renew(Box::new(OwnedRenewal::sample(&large)));
        queue.fetch(Fetch { put, purpose })
    };
    let taken = (0..10_000).filter(|_| renew().is_ok()).count();
    assert!((100..=RENEWAL_BYTES / 30_000).contains(&taken), "{taken}");
    assert!(queue.fetch(Fetch { put, purpose: Purpose::Load(oneshot::channel().0) }).is_ok());
    assert!(queue.next_fetch().is_some() && renew().is_ok() && renew().is_err());
}
