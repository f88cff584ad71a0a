//! What an answer is worth to a client, judged by what is in it.
//!
//! A product says when it was made. One that was made before it was asked for is an old copy, whatever its fields say; and of reviews
//! only what is older than the shared cache may give. Half an answer, another product, another language are errors with any status.

use std::time::Duration;

use backstop_lab::client::{ClientError, Response};
use backstop_lab::clock::monotonic_ns;
use serde::Serialize;

/// A client gives up after this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// A right answer that took longer is a slow one.
pub(super) const SLOW: Duration = Duration::from_secs(1);
/// What the shared caches may give: two seconds from when it was kept, and the way there and back.
const CACHED: Duration = Duration::from_millis(2400);

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Product { id: u32, language: &'static str },
    Reviews { id: u32 },
    Recommendations { id: u32 },
    Account { number: u64 },
    Payment,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Normal,
    Copy,
    Prepared,
    Slow,
    Refused,
    Error,
    Nothing,
}

impl Verdict {
    pub(super) const ALL: [Self; 7] =
        [Self::Normal, Self::Copy, Self::Prepared, Self::Slow, Self::Refused, Self::Error, Self::Nothing];

    /// As people are told.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Copy => "old copy",
            Self::Prepared => "general answer",
            Self::Slow => "slow",
            Self::Refused => "refused",
            Self::Error => "error",
            Self::Nothing => "no answer",
        }
    }
}

/// A verdict, and the age of what was in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) status: Option<u16>,
    pub(super) age: Option<Duration>,
}

/// Judges one answer. `None` is one that did not come in time. `sent_ns` and the making of products are on the same clock.
pub(super) fn judge(
    asked: &Asked,
    answer: Option<&Result<Response, ClientError>>,
    sent_ns: u64,
    took: Duration,
) -> Judged {
    let bare = |verdict| Judged { verdict, status: None, age: None };
    let answer = match answer {
        None => return bare(Verdict::Nothing),
        Some(Err(_)) => return bare(Verdict::Error),
        Some(Ok(answer)) => answer,
    };
    let status = Some(answer.status());
    if !(200..300).contains(&answer.status()) || !answer.is_complete() {
        let verdict = if is_refusal(answer) { Verdict::Refused } else { Verdict::Error };
        return Judged { verdict, status, age: None };
    }
    let (content, age) = content(asked, answer, sent_ns);
    let verdict = match content {
        Verdict::Normal if took > SLOW => Verdict::Slow,
        other => other,
    };
    Judged { verdict, status, age }
}

/// What is in it, whatever it took.
fn content(asked: &Asked, answer: &Response, sent_ns: u64) -> (Verdict, Option<Duration>) {
    if matches!(asked, Asked::Recommendations { .. }) && answer.body == super::PREPARED.as_bytes() {
        return (Verdict::Prepared, None);
    }
    let Ok(said) = answer.json() else { return (Verdict::Error, None) };
    let has = |name: &str, wanted: &str| said[name].as_str() == Some(wanted);
    let is_right = match asked {
        Asked::Product { id, language } => {
            has("id", &id.to_string()) && has("lang", language) && said["text"].is_string()
        }
        Asked::Reviews { id } => has("id", &id.to_string()),
        Asked::Recommendations { id } => has("for", &id.to_string()),
        Asked::Account { number } => has("executed", &number.to_string()),
        Asked::Payment => has("status", "succeeded"),
    };
    if !is_right {
        return (Verdict::Error, None);
    }
    let made_ns = said["made_ns"].as_u64();
    let age = made_ns.map(|made| Duration::from_nanos(monotonic_ns().saturating_sub(made)));
    match (asked, made_ns, age) {
        (Asked::Product { .. }, Some(made_ns), age) if made_ns < sent_ns => (Verdict::Copy, age),
        (Asked::Reviews { .. }, Some(_), Some(age)) if age > CACHED => (Verdict::Copy, Some(age)),
        (Asked::Product { .. } | Asked::Reviews { .. }, None, _) => (Verdict::Error, None),
        (_, _, age) => (Verdict::Normal, age),
    }
}

/// A refusal says that it is one, as a problem (RFC 9457) with a mark; an error page does not.
fn is_refusal(answer: &Response) -> bool {
    let is_marked =
        matches!(answer.mark(), Ok(Some(mark)) if mark.outcome == "rejected" || mark.outcome == "failed");
    answer.status() == 503 && is_marked && answer.json().is_ok()
}

#[cfg(test)]
mod tests {
    use backstop_lab::client;
    use backstop_lab::origin::{Answer, Origin};

    use super::*;

    const PRODUCT: Asked = Asked::Product { id: 4, language: "es" };

    async fn of(asked: &Asked, answer: Answer, sent_ns: u64) -> Judged {
        let origin = Origin::start().await.unwrap();
        origin.default(answer);
        let answer = client::get(origin.addr(), "/", &[]).await;
        judge(asked, Some(&answer), sent_ns, Duration::ZERO)
    }

    fn product(id: &str, lang: &str, made_ns: u64) -> Answer {
        let text = format!(r#"{{"id":"{id}","lang":"{lang}","text":"Producto","made_ns":{made_ns}}}"#);
        Answer::json(text)
    }

    #[tokio::test]
    async fn a_product_that_was_made_before_it_was_asked_for_is_an_old_copy() {
        let now = monotonic_ns();
        assert_eq!(of(&PRODUCT, product("4", "es", now), now).await.verdict, Verdict::Normal);
        let copy = of(&PRODUCT, product("4", "es", now - 3_000_000_000), now).await;
        assert_eq!((copy.verdict, copy.age.unwrap().as_secs()), (Verdict::Copy, 3));
        // Fields that say otherwise are not believed.
        let said = product("4", "es", now).header("Backstop", "outcome=fallback, source=snapshot, age=5");
        assert_eq!(of(&PRODUCT, said, now).await.verdict, Verdict::Normal);
    }

    #[tokio::test]
    async fn another_product_or_language_or_half_of_it_is_an_error() {
        let now = monotonic_ns();
        for answer in [
            product("5", "es", now),
            product("4", "en", now),
            Answer::json(r#"{"id":"4","lang":"es","#),
            Answer::json(r#"{"id":"4","lang":"es","text":"undated"}"#),
            Answer::new(503),
            Answer::new(500).header("Backstop", "outcome=failed, reason=reset").body("{}"),
        ] {
            assert_eq!(of(&PRODUCT, answer, now).await.verdict, Verdict::Error);
        }
        let refusal = Answer::new(503).header("Backstop", "outcome=rejected, reason=missing").body("{}");
        let refused = of(&PRODUCT, refusal, now).await;
        assert_eq!((refused.verdict, refused.status), (Verdict::Refused, Some(503)));
    }

    #[tokio::test]
    async fn a_general_answer_is_known_by_its_text() {
        let asked = Asked::Recommendations { id: 4 };
        let general = of(&asked, Answer::json(super::super::PREPARED), 0).await;
        assert_eq!(general.verdict, Verdict::Prepared);
        assert_eq!(of(&asked, Answer::json(r#"{"for":"4"}"#), 0).await.verdict, Verdict::Normal);
        assert_eq!(of(&asked, Answer::json(r#"{"for":"5"}"#), 0).await.verdict, Verdict::Error);
    }

    #[tokio::test]
    async fn time_counts_as_much_as_content() {
        let origin = Origin::start().await.unwrap();
        origin.default(Answer::json(r#"{"executed":"7"}"#));
        let answer = client::get(origin.addr(), "/", &[]).await;
        let asked = Asked::Account { number: 7 };
        let verdict = |took| judge(&asked, Some(&answer), 0, took).verdict;
        assert_eq!(verdict(SLOW), Verdict::Normal);
        assert_eq!(verdict(SLOW + Duration::from_millis(1)), Verdict::Slow);
        assert_eq!(judge(&asked, None, 0, PATIENCE).verdict, Verdict::Nothing);
    }
}
