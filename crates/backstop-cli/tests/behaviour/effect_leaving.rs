//! Clients that leave, one at every phase of their operation: whoever comes with the same key hears what really happened, and the
//! service got it once at most.

use backstop_lab::client::{Connection, RequestBytes};
use backstop_lab::origin::{Answer, Gate};
use backstop_store::ledger::checkpoint::Checkpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::support::bank::{Bank, PAY, TEN, keyed, paid, pay_at};
use crate::support::{BOUND, Metrics, run};

/// When a client leaves.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Five bytes of its request are missing.
    HalfSent,
    /// Somebody stands at this moment.
    At(Checkpoint),
    /// The service is at work.
    Working,
}

fn request(bank: &Bank) -> Vec<u8> {
    RequestBytes::new(&bank.gateway.host, "POST", PAY, &keyed("k-1"), TEN).0.to_vec()
}

/// So many clients are there, as far as the gateway knows.
async fn connections(bank: &Bank, count: f64) {
    bank.gateway.metrics_until(|metrics| metrics.sum("backstop_client_connections", &[]) == count).await;
}

/// The outcome is in the ledger.
async fn is_known(bank: &Bank) {
    let known = |metrics: &Metrics| metrics.sum("backstop_operations", &["state=\"succeeded\""]) == 1.0;
    bank.gateway.metrics_until(known).await;
}

/// While the intent is synced and while the outcome is, the ledger's thread stands in the transaction that is not committed. At
/// `outcome_committed` it is the client's own worker that stands, so that not a byte of the reply is written before it left, and
/// nobody can see it go until then.
#[test]
fn whenever_a_client_leaves_the_same_key_hears_what_happened() {
    run(async {
        for (phase, sent_once_left) in [
            (Phase::HalfSent, 0),
            (Phase::At(Checkpoint::IntentWritten), 1),
            (Phase::Working, 1),
            (Phase::At(Checkpoint::OutcomeWritten), 1),
            (Phase::At(Checkpoint::OutcomeCommitted), 1),
        ] {
            let mut bank = Bank::open().await;
            let gate = Gate::new();
            if matches!(phase, Phase::Working) {
                bank.says(paid().gate(&gate));
            }
            if let Phase::At(point) = phase {
                bank.hand.hold(point);
            }
            let whole = request(&bank);
            let missing = if matches!(phase, Phase::HalfSent) { 5 } else { 0 };
            let mut leaving = Connection::open(bank.gateway.addr).await.unwrap();
            leaving.send(&whole[..whole.len() - missing]).await.unwrap();
            match phase {
                Phase::HalfSent => connections(&bank, 1.0).await,
                Phase::Working => gate.wait_for_waiting(1, BOUND).await.unwrap(),
                Phase::At(point) => bank.hand.wait_for_held(point),
            }
            let before = bank.received();
            assert!(!leaving.has_ended() && leaving.leftover().is_empty(), "{phase:?}: it has heard nothing");
            leaving.reset().unwrap();
            if !matches!(phase, Phase::At(Checkpoint::OutcomeCommitted)) {
                connections(&bank, 0.0).await;
            }
            match phase {
                Phase::HalfSent => assert_eq!(before, 0),
                Phase::Working => gate.open(),
                Phase::At(point) => {
                    assert_eq!(before, u64::from(point > Checkpoint::ForwardSent), "{phase:?}");
                    bank.hand.release(point);
                }
            }
            if sent_once_left > 0 {
                is_known(&bank).await;
            }
            connections(&bank, 0.0).await;
            assert_eq!(bank.received(), sent_once_left, "{phase:?}");
            let again = bank.pay("k-1").await;
            assert_eq!((again.status(), again.text()), (201, paid_text()), "{phase:?}");
            let replayed = (sent_once_left > 0).then_some("true");
            assert_eq!(again.header("idempotent-replayed"), replayed, "{phase:?}");
            assert_eq!(bank.received(), 1, "{phase:?}");
        }
    });
}

fn paid_text() -> String {
    "{\"status\": \"paid\", \"id\": \"p-1\"}".into()
}

/// In the middle of the reply: the client has its head and a little more, and its socket takes no more than that of the megabyte that
/// follows.
#[test]
fn a_client_that_leaves_in_the_middle_of_the_reply_has_paid_once() {
    const BYTES: usize = 1000 << 10;
    run(async {
        let bank = Bank::open().await;
        let text = format!("{{\"status\":\"paid\",\"pad\":\"{}\"}}", "x".repeat(BYTES));
        bank.says(Answer::new(201).header("Content-Type", "application/json").body(text));
        let socket = TcpSocket::new_v4().unwrap();
        // The system makes it no larger then.
        socket.set_recv_buffer_size(4 * 1024).unwrap();
        let mut leaving = socket.connect(bank.gateway.addr).await.unwrap();
        leaving.write_all(&request(&bank)).await.unwrap();
        let mut head = [0; 4096];
        tokio::time::timeout(BOUND, leaving.read_exact(&mut head)).await.expect("it begins").unwrap();
        assert!(head.starts_with(b"HTTP/1.1 201 "), "{}", String::from_utf8_lossy(&head));
        is_known(&bank).await;
        leaving.set_zero_linger().unwrap();
        drop(leaving);
        connections(&bank, 0.0).await;
        let again = pay_at(&bank.gateway, "k-1").await;
        assert_eq!((again.status(), again.header("backstop-replay")), (201, Some("status-only")));
        assert_eq!(bank.received(), 1);
    });
}
