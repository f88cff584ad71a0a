//! The buttons: what each breaks, what to look at, how to try it by hand, and which lines of the policy are responsible.

use std::net::SocketAddr;

use super::lines::{self, PolicyLine};

/// What can be done to both shops at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Button {
    BreakCatalog,
    SlowRecommendations,
    StopCache,
    BreakLogin,
    LosePayment,
    Heal,
}

/// A table of the policy and keys in it.
type Wanted = (&'static str, &'static [&'static str]);

impl Button {
    pub(super) const ALL: [Self; 6] = [
        Self::BreakCatalog,
        Self::SlowRecommendations,
        Self::StopCache,
        Self::BreakLogin,
        Self::LosePayment,
        Self::Heal,
    ];

    /// Its name in addresses and in JSON.
    pub(super) fn slug(self) -> &'static str {
        match self {
            Self::BreakCatalog => "break-catalog",
            Self::SlowRecommendations => "slow-recommendations",
            Self::StopCache => "stop-cache",
            Self::BreakLogin => "break-login",
            Self::LosePayment => "lose-payment",
            Self::Heal => "heal",
        }
    }

    pub(super) fn of(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|button| button.slug() == slug)
    }

    /// What stands on it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::BreakCatalog => "Break catalog",
            Self::SlowRecommendations => "Slow recommendations",
            Self::StopCache => "Stop the cache",
            Self::BreakLogin => "Break login",
            Self::LosePayment => "Lose a payment\u{2019}s answer",
            Self::Heal => "Heal",
        }
    }

    /// What is broken by it, or what was done.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::BreakCatalog => "catalog",
            Self::SlowRecommendations => "recommendations",
            Self::StopCache => "cache",
            Self::BreakLogin => "login",
            Self::LosePayment => "payment lost",
            Self::Heal => "healed",
        }
    }

    /// Whether it stays pressed until it is pressed again or everything is healed.
    pub(super) fn stays(self) -> bool {
        !matches!(self, Self::LosePayment | Self::Heal)
    }

    /// What it does, in one sentence.
    pub(super) fn does(self) -> &'static str {
        match self {
            Self::BreakCatalog => "The catalog and its database are down: connections are refused.",
            Self::SlowRecommendations => "The recommender answers after three seconds.",
            Self::StopCache => "The shared cache in front of the reviews is down.",
            Self::BreakLogin => "The service that says who may answers 500.",
            Self::LosePayment => {
                "The next payment is made three seconds late, and its answer is lost at once: the connection is reset."
            }
            Self::Heal => "Everything works again; a database that was down is cold and slower for a while.",
        }
    }

    /// Where the difference is seen.
    pub(super) fn look_at(self) -> &'static str {
        match self {
            Self::BreakCatalog => {
                "Look at Products: errors on one side; on the other copies whose age counts up to its limit, then refusals."
            }
            Self::SlowRecommendations => {
                "Look at Recommendations: clients that wait in vain on one side, a general answer within its deadline on the \
                 other."
            }
            Self::StopCache => {
                "Look at Database, then at Products: every review falls through to the database on one side; on the other reads \
                 stay within a budget, and copies stand in."
            }
            Self::BreakLogin => {
                "Look at Account: 500, a broken page, on one side; 503, try again later, on the other. Nothing is executed on \
                 either."
            }
            Self::LosePayment => {
                "Look at Payments: clients repeat once with the same key. On one side that pays again; on the other it stays one \
                 payment, \u{201c}in verification\u{201d} until its status was asked for."
            }
            Self::Heal => {
                "Look at Database and Products: on one side everything returns at once to a cold database, which collapses \
                 again; on the other the load returns in steps."
            }
        }
    }

    /// What is responsible in the policy.
    fn wanted(self) -> &'static [Wanted] {
        match self {
            Self::BreakCatalog => {
                &[("route.product.public_read", &["key", "max_age"]), ("dependency.catalog", &["breaker"])]
            }
            Self::SlowRecommendations => &[("route.recommendations.optional", &["deadline", "otherwise"])],
            Self::StopCache => &[
                ("route.reviews.cached_read", &["cache", "fill", "local_copy"]),
                ("resource.catalog-db", &["concurrency"]),
            ],
            Self::BreakLogin => &[
                ("route.account.guarded", &["authorizer"]),
                ("authorizer.sessions", &["allow", "deny", "timeout"]),
            ],
            Self::LosePayment => &[
                ("route.pay.effect", &["operation_id", "verify"]),
                ("route.pay.effect.status_query", &["path", "echo"]),
            ],
            Self::Heal => &[
                ("dependency.catalog", &["uses", "breaker", "recovery"]),
                ("resource.catalog-db", &["concurrency"]),
            ],
        }
    }

    /// Those lines, as they stand in the policy.
    pub(super) fn lines(self, policy: &str) -> Vec<PolicyLine> {
        lines::find(policy, self.wanted())
    }

    /// What to type to see it.
    pub(super) fn curl(self, server: SocketAddr, admin: Option<SocketAddr>) -> String {
        match self {
            Self::BreakCatalog => format!("curl -i -H 'Accept-Language: es' http://{server}/products/1"),
            Self::SlowRecommendations => format!("curl -i http://{server}/recommendations/1"),
            Self::StopCache => format!("curl -i http://{server}/reviews/1"),
            Self::BreakLogin => {
                format!("curl -i -X POST -H 'Authorization: Bearer demo' http://{server}/account/1")
            }
            Self::LosePayment => format!(
                "curl -i -H 'Authorization: Bearer demo' -H 'Content-Type: application/json' -H 'Idempotency-Key: mine-1' -d \
                 '{{\"amount\":10}}' http://{server}/payments"
            ),
            Self::Heal => match admin {
                Some(admin) => format!("curl -s http://{admin}/metrics | grep catalog"),
                None => format!("curl -i http://{server}/products/1"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each shows at least one line below a table of the real policy, and every table and key that it names is there.
    #[test]
    fn every_button_shows_the_lines_of_the_policy_that_are_responsible() {
        for button in Button::ALL {
            let wanted: usize = button.wanted().iter().map(|(_, keys)| 1 + keys.len()).sum();
            let found = button.lines(super::super::POLICY);
            assert_eq!(found.len(), wanted, "{button:?}: {found:#?}");
            assert!(wanted >= 2);
        }
    }

    #[test]
    fn a_button_is_found_by_its_name() {
        for button in Button::ALL {
            assert_eq!(Button::of(button.slug()), Some(button));
        }
        assert_eq!(Button::of("break"), None);
    }
}
