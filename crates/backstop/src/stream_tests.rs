use std::future::poll_fn;

use super::*;
use crate::clock::ManualClock;

/// Gives a piece for each word that it is sent, and ends with the sender.
struct Fed(tokio::sync::mpsc::UnboundedReceiver<()>);

impl Body for Fed {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.0.poll_recv(context).map(|word| word.map(|()| Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

struct Reader {
    stream: Pin<Box<Stream<Fed>>>,
    feed: tokio::sync::mpsc::UnboundedSender<()>,
    hand: ManualClock,
    began: Mono,
}

impl Reader {
    fn new(patience: Patience) -> Self {
        let (clock, hand) = Clock::manual(Default::default());
        let (feed, fed) = tokio::sync::mpsc::unbounded_channel();
        let began = clock.mono();
        let stream = Box::pin(Stream::new(Prefix::default(), Fed(fed), clock, patience));
        Self { stream, feed, hand, began }
    }

    /// Asks for a piece, and what became known by that.
    async fn ask(&mut self) -> (Poll<Result<(), ()>>, Option<Duration>) {
        let polled = poll_fn(|context| Poll::Ready(self.stream.as_mut().poll_frame(context))).await;
        let told = self.stream.as_mut().turned_slow().map(|at| self.began.until(at));
        (polled.map(|frame| frame.expect("it does not end").map(drop).map_err(drop)), told)
    }

    fn pass(&self, ms: u64) {
        self.hand.advance(Duration::from_millis(ms));
    }
}

const fn in_all(left_ms: u64, slow_in_ms: u64) -> Patience {
    Patience::InAll { left: Duration::from_millis(left_ms), slow_in: Some(Duration::from_millis(slow_in_ms)) }
}

const MS: Duration = Duration::from_millis(1);

/// By hand: 400 ms are accepted. 400 ms are not slow; a nanosecond more is, told once and at that moment.
#[tokio::test]
async fn it_is_slow_from_the_first_nanosecond_beyond_what_is_accepted() {
    let mut reader = Reader::new(in_all(1000, 400));
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(400);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.hand.advance(Duration::from_nanos(1));
    assert_eq!(reader.ask().await, (Poll::Pending, Some(400 * MS + Duration::from_nanos(1))));
    reader.pass(599);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(1);
    assert_eq!(reader.ask().await, (Poll::Ready(Err(())), None));
}

/// By hand: 150 ms, three times: 450 of 400. The last piece tells it, although nobody looked in between.
#[tokio::test]
async fn short_waits_add_up() {
    let mut reader = Reader::new(in_all(1000, 400));
    for told in [None, None, Some(450 * MS)] {
        assert_eq!(reader.ask().await, (Poll::Pending, None));
        reader.pass(150);
        reader.feed.send(()).unwrap();
        assert_eq!(reader.ask().await, (Poll::Ready(Ok(())), told));
    }
    assert_eq!(reader.ask().await, (Poll::Pending, None));
}

#[tokio::test]
async fn a_reader_who_takes_their_time_makes_nobody_slow() {
    let mut reader = Reader::new(in_all(1000, 400));
    for _ in 0..10 {
        reader.feed.send(()).unwrap();
        reader.pass(5000);
        assert_eq!(reader.ask().await, (Poll::Ready(Ok(())), None));
    }
}

/// Silence is what such a route accepts.
#[tokio::test]
async fn an_answer_without_end_is_never_slow() {
    let mut reader = Reader::new(Patience::Idle(Duration::from_secs(5)));
    for _ in 0..10 {
        assert_eq!(reader.ask().await, (Poll::Pending, None));
        reader.pass(4999);
        reader.feed.send(()).unwrap();
        assert_eq!(reader.ask().await, (Poll::Ready(Ok(())), None));
    }
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(5000);
    assert_eq!(reader.ask().await, (Poll::Ready(Err(())), None));
}

/// What ends before it is slow is not slow.
#[tokio::test]
async fn the_deadline_comes_first_where_it_is_shorter() {
    let mut reader = Reader::new(in_all(300, 400));
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(300);
    assert_eq!(reader.ask().await, (Poll::Ready(Err(())), None));
}
