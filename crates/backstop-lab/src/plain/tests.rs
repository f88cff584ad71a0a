//! The table of the module, row by row.

use super::*;
use crate::cache::CacheServer;
use crate::client;
use crate::origin::Then;

const PATIENCE: Duration = Duration::from_millis(300);

async fn before(upstream: &Origin, authorizer: Option<&Origin>, cache: Option<&CacheServer>) -> Plain {
    let way = Way {
        prefix: "/",
        upstream: upstream.addr(),
        authorizer: authorizer.map(Origin::addr),
        cache: cache.map(|cache| (cache.addr(), Duration::from_secs(60))),
    };
    Plain::start(vec![way], PATIENCE).await.unwrap()
}

async fn status(proxy: &Plain) -> u16 {
    client::get(proxy.addr(), "/a?b=c", &[]).await.unwrap().status()
}

#[tokio::test]
async fn what_the_upstream_answers_is_passed_on() {
    let upstream = Origin::start().await.unwrap();
    upstream.default(Answer::new(201).header("Location", "/here").body("made"));
    let proxy = before(&upstream, None, None).await;
    let answer = client::request(proxy.addr(), "POST", "/a?b=c", &[("X-One", "1")], b"sent").await.unwrap();
    assert_eq!(
        (answer.status(), answer.text().as_str(), answer.header("location")),
        (201, "made", Some("/here"))
    );
    let seen = upstream.requests().pop().unwrap();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/a?b=c"));
    assert_eq!((seen.header("x-one"), seen.text().as_str()), (Some("1"), "sent"));
}

#[tokio::test]
async fn a_failing_upstream_is_502_a_silent_one_504_and_nothing_is_repeated() {
    let upstream = Origin::start().await.unwrap();
    let proxy = before(&upstream, None, None).await;
    for (behaviour, wanted) in [
        (Behaviour::reset(), 502),
        (Behaviour::truncated(600, 300), 502),
        (Behaviour::raw("", Then::Close), 502),
        (Behaviour::hang(), 504),
        (Behaviour::status(503), 503),
    ] {
        upstream.on(Matcher::any(), behaviour);
        let seen = upstream.count();
        assert_eq!(status(&proxy).await, wanted);
        assert_eq!(upstream.count(), seen + 1);
    }
    upstream.refuse().await.unwrap();
    assert_eq!(status(&proxy).await, 502);
}

#[tokio::test]
async fn an_authorizer_says_yes_or_no_and_its_failure_is_500() {
    let (upstream, authorizer) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
    let proxy = before(&upstream, Some(&authorizer), None).await;
    for (says, wanted) in [(204, 200), (401, 401), (403, 403), (500, 500), (503, 500), (404, 500)] {
        authorizer.on(Matcher::any(), Answer::new(says).header("X-User", "ana"));
        assert_eq!(status(&proxy).await, wanted, "{says}");
    }
    assert_eq!(upstream.count(), 1, "only the yes leads on");
    assert_eq!(upstream.requests()[0].header("x-user"), Some("ana"));
    assert_eq!(authorizer.requests()[0].header("x-original-uri"), Some("/a?b=c"));
}

#[tokio::test]
async fn without_its_cache_everything_falls_through() {
    let (upstream, cache) = (Origin::start().await.unwrap(), CacheServer::start().await.unwrap());
    let proxy = before(&upstream, None, Some(&cache)).await;
    for _ in 0..3 {
        assert_eq!(status(&proxy).await, 200);
    }
    assert_eq!(upstream.count(), 1);
    cache.stop();
    for _ in 0..3 {
        assert_eq!(status(&proxy).await, 200);
    }
    assert_eq!(upstream.count(), 4);
}
