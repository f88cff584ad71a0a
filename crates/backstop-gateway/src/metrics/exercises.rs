//! What came of trying alternatives.

use std::fmt;

use backstop_engine::exercise::Tried;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};

impl Everything {
    pub(super) fn exercises(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let routes = self.0.backstop.engine().routes();
        let tried = || {
            routes.iter().flat_map(|route| {
                Tried::of(&route.rules).map(move |tried| (route, tried, tried.source(&route.rules).token()))
            })
        };
        let help = "Alternatives tried while nobody needed them, by what came of it";
        let mut exercises = series(encoder, "backstop_exercises", help, MetricType::Counter)?;
        for (route, tried, alternative) in tried() {
            for count in route.exercises.counts(tried) {
                let labels = vec![
                    ("route", &*route.rules.name),
                    ("alternative", alternative),
                    ("result", count.verdict.token()),
                    ("reason", count.reason),
                ];
                exercises.count(&labels, count.count)?;
            }
        }
        let help = "1 while an alternative would not answer, by its last exercises";
        let mut broken = series(encoder, "backstop_exercise_broken", help, MetricType::Gauge)?;
        for (route, tried, alternative) in tried() {
            let labels = vec![("route", &*route.rules.name), ("alternative", alternative)];
            broken.gauge(&labels, f64::from(u8::from(route.exercises.is_broken(tried))))?;
        }
        Ok(())
    }
}
