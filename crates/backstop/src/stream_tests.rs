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
}

impl Reader {
    fn new(patience: Patience) -> Self {
        let (clock, hand) = Clock::manual(Default::default());
        let (feed, fed) = tokio::sync::mpsc::unbounded_channel();
        let stream = Box::pin(Stream::new(Prefix::default(), Fed(fed), clock, patience));
        Self { stream, feed, hand }
    }

    /// Asks for a piece, and how long was waited for it, as far as that is told.
    async fn ask(&mut self) -> (Poll<Result<(), ()>>, Option<Duration>) {
        let polled = poll_fn(|context| Poll::Ready(self.stream.as_mut().poll_frame(context))).await;
        let told = self.stream.as_mut().waited();
        if let Some(waited) = told {
            assert_eq!(waited.now, self.hand.now().mono);
        }
        (polled.map(|frame| frame.expect("it does not end").map(drop).map_err(drop)), told.map(|it| it.time))
    }

    fn pass(&self, ms: u64) {
        self.hand.advance(Duration::from_millis(ms));
    }
}

const fn in_all(left_ms: u64, slow_in_ms: u64) -> Patience {
    Patience::InAll { left: Duration::from_millis(left_ms), slow_in: Some(Duration::from_millis(slow_in_ms)) }
}

const MS: Duration = Duration::from_millis(1);

const NANOSECOND: Duration = Duration::from_nanos(1);

/// By hand: 400 ms are accepted. 400 ms are not slow; a nanosecond more is, told at that moment, and what follows with the end.
#[tokio::test]
async fn it_is_slow_from_the_first_nanosecond_beyond_what_is_accepted() {
    let mut reader = Reader::new(in_all(1000, 400));
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(400);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.hand.advance(NANOSECOND);
    assert_eq!(reader.ask().await, (Poll::Pending, Some(400 * MS + NANOSECOND)));
    reader.pass(599);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(1);
    assert_eq!(reader.ask().await, (Poll::Ready(Err(())), Some(600 * MS)));
}

/// By hand: 150 ms, three times, are 450 of 400. Each is told with its piece, and after 100 ms of the third it would be slow.
#[tokio::test]
async fn short_waits_add_up() {
    let mut reader = Reader::new(in_all(1000, 400));
    for _ in 0..2 {
        assert_eq!(reader.ask().await, (Poll::Pending, None));
        reader.pass(150);
        reader.feed.send(()).unwrap();
        assert_eq!(reader.ask().await, (Poll::Ready(Ok(())), Some(150 * MS)));
    }
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(100);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.hand.advance(NANOSECOND);
    assert_eq!(reader.ask().await, (Poll::Pending, Some(100 * MS + NANOSECOND)));
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

/// A dependency that answers what it has not yet got: of 5 s of silence the client took 4.9 s for its own content.
#[tokio::test]
async fn a_client_who_is_still_sending_makes_nobody_slow() {
    let watch = Arc::new(UploadWatch::default());
    let mut reader = Reader::new(in_all(1000, 400));
    let stream = std::mem::replace(&mut reader.stream, Reader::new(in_all(1000, 400)).stream);
    reader.stream = Box::pin(Pin::into_inner(stream).alongside(Some(Arc::clone(&watch))));
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(50);
    watch.wait(reader.hand.now().mono);
    reader.pass(4900);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    watch.arrive(reader.hand.now().mono);
    reader.pass(50);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.feed.send(()).unwrap();
    assert_eq!(reader.ask().await, (Poll::Ready(Ok(())), Some(100 * MS)));
    // What it takes itself it takes itself.
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(300);
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.hand.advance(NANOSECOND);
    assert_eq!(reader.ask().await, (Poll::Pending, Some(300 * MS + NANOSECOND)));
}

/// Silence is what such a route accepts.
#[tokio::test]
async fn an_answer_without_end_may_be_silent_between_pieces() {
    let mut reader = Reader::new(Patience::Idle(Duration::from_secs(5)));
    for _ in 0..10 {
        assert_eq!(reader.ask().await, (Poll::Pending, None));
        reader.pass(4999);
        reader.feed.send(()).unwrap();
        assert_eq!(reader.ask().await, (Poll::Ready(Ok(())), Some(4999 * MS)));
    }
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(5000);
    assert_eq!(reader.ask().await, (Poll::Ready(Err(())), Some(5000 * MS)));
}

/// What ends before it is slow is not slow.
#[tokio::test]
async fn the_deadline_comes_first_where_it_is_shorter() {
    let mut reader = Reader::new(in_all(300, 400));
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(300);
    assert_eq!(reader.ask().await, (Poll::Ready(Err(())), Some(300 * MS)));
}

/// Whoever leaves has waited until then.
#[tokio::test]
async fn leaving_ends_a_wait() {
    let mut reader = Reader::new(in_all(1000, 400));
    assert_eq!(reader.ask().await, (Poll::Pending, None));
    reader.pass(250);
    reader.stream.as_mut().end_wait();
    assert_eq!(reader.stream.as_mut().waited().map(|waited| waited.time), Some(250 * MS));
}
