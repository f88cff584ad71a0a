use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::stream::Patience;
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};

struct Pieces(VecDeque<Result<Bytes, BrokenOff>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
    }
}

fn pieces(sizes: &[usize]) -> Pieces {
    Pieces(sizes.iter().map(|size| Ok(Bytes::from(vec![b'x'; *size]))).collect())
}

fn budget(bytes: u64) -> Budget {
    let budget = Budget::default();
    budget.set(bytes);
    budget
}

#[tokio::test]
async fn a_whole_answer_is_held_until_it_is_dropped() {
    let budget = budget(100);
    let collected = collect(pieces(&[40, 60]), 1000, &budget).await.unwrap();
    let Collected::Whole { body, held, .. } = collected else { panic!("it fits") };
    assert_eq!((body.len(), budget.now().bytes), (100, 100));
    drop(held);
    assert_eq!(budget.now().bytes, 0);
}

#[tokio::test]
async fn without_room_an_answer_streams_whole_and_returns_what_was_held_of_it() {
    let budget = budget(100);
    let collected = collect(pieces(&[40, 50, 60]), 1000, &budget).await.unwrap();
    let Collected::TooLarge { prefix, rest } = collected else { panic!("there is no room") };
    assert_eq!((budget.now().bytes, budget.now().refused), (90, 1));
    let (clock, _hand) = Clock::manual(Default::default());
    let stream = Stream::new(prefix, rest, clock, Patience::Idle(Duration::from_secs(1)));
    let mut stream = Box::pin(stream);
    let mut sent = 0;
    while let Some(frame) = poll_fn(|context| stream.as_mut().poll_frame(context)).await {
        sent += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(sent, 150, "not a byte is lost");
    assert_eq!(budget.now().bytes, 0);
}

#[tokio::test]
async fn an_answer_that_breaks_off_holds_nothing() {
    let budget = budget(100);
    let failure = Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe);
    let body = Pieces(VecDeque::from([Ok(Bytes::from_static(b"half")), Err(failure.into())]));
    assert!(collect(body, 1000, &budget).await.is_err());
    assert_eq!(budget.now().bytes, 0);
}

#[test]
fn a_large_whole_body_goes_out_in_pieces() {
    let mut body = Some(Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 1]));
    let sizes: Vec<usize> = std::iter::from_fn(|| next_piece(&mut body)).map(|piece| piece.len()).collect();
    assert_eq!(sizes, [PIECE_BYTES, PIECE_BYTES, 1]);
}

/// Each piece costs more than its bytes, and only bytes are counted: small ones are joined, in their order.
#[tokio::test]
async fn tiny_pieces_cost_no_more_than_their_bytes() {
    let budget = budget(1 << 20);
    let tiny = Pieces((0..10_000_u32).map(|number| Ok(Bytes::from(vec![number as u8]))).collect());
    let Collected::TooLarge { prefix, .. } = collect(tiny, 9_000, &budget).await.unwrap() else {
        panic!("it is larger")
    };
    assert_eq!(prefix.pieces.len(), 2, "the first one, and all others");
    let joined: Vec<u8> = prefix.pieces.iter().flatten().copied().collect();
    let expected: Vec<u8> = (0..9_001_u32).map(|number| number as u8).collect();
    assert_eq!(joined, expected);

    let mixed = collect(pieces(&[1, 5000, 1, 1, 5000, 1]), 1 << 20, &budget).await.unwrap();
    let Collected::Whole { body, .. } = mixed else { panic!("it fits") };
    assert_eq!(body.len(), 10_004);
}
