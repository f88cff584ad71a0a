//! The pictures of the page: a quarter of an hour of functions and dependencies, and the incidents in it.

use backstop_chart::{
    Band, Clock, Frame, Hue, Layer, Point, Ramp, Row, Scale, Span, Svg, ramp, stacked, timeline,
};

use super::board::{Board, Reading};
use super::history::FINE;
use super::view::{DependencyView, IncidentView, View};

/// One step of the pictures, in seconds.
const STEP: u64 = 5;
const STEPS: usize = (FINE / STEP) as usize;
/// Pictures of dependencies at most: a page lists the others in words.
const DEPENDENCIES: usize = 12;

/// The pictures.
#[derive(Debug)]
pub(super) struct Curves {
    /// One for each function; one for all requests where there is none.
    pub(super) functions: Vec<Svg>,
    /// One for each dependency that is or was not in order, by its name.
    pub(super) dependencies: Vec<(String, Svg)>,
    /// The incidents of this time, if there were any.
    pub(super) incidents: Option<Svg>,
}

pub(super) fn curves(board: &Board, reading: &Reading, view: &View) -> Curves {
    let steps = Steps::new(reading);
    let span = Span::new(-(shown_for(view.gateway.uptime_seconds) as f64), 0.0, Clock::Ago);
    let ended: Vec<&IncidentView> = recent(view);
    let names: Vec<&str> = board.functions.iter().map(|name| &**name).collect();
    let all = [(names.len(), "all requests")];
    let shown: Vec<(usize, &str)> =
        if names.is_empty() { all.to_vec() } else { names.iter().copied().enumerate().take(12).collect() };
    let functions = shown.into_iter().map(|(index, name)| steps.function(index, name, span));
    let worth = |index: &usize| steps.is_worth_a_picture(*index);
    let shown = (0..view.dependencies.len()).filter(worth).take(DEPENDENCIES);
    let dependencies = shown.filter_map(|index| {
        let one = view.dependencies.get(index)?;
        Some((one.name.clone(), steps.dependency(index, one, span)))
    });
    Curves {
        functions: functions.collect(),
        dependencies: dependencies.collect(),
        incidents: (!ended.is_empty()).then(|| steps.incidents(&ended, view, span)),
    }
}

/// How far back it is shown: no further than there is something to show.
const fn shown_for(uptime_seconds: u64) -> u64 {
    match uptime_seconds {
        0..=120 => 120,
        121..=300 => 300,
        _ => FINE,
    }
}

/// The incidents that reach into this time.
fn recent(view: &View) -> Vec<&IncidentView> {
    let is_recent = |one: &&IncidentView| {
        one.ended.is_none()
            || super::page::ago(&one.began, &view.at).is_some_and(|ago| ago < FINE + one.seconds)
    };
    view.incidents.iter().filter(is_recent).take(4).collect()
}

/// Sums over steps of time.
struct Steps {
    /// Beginning of each, in seconds before now.
    moments_s: Vec<f64>,
    functions: Vec<Vec<[f64; 3]>>,
    dependencies: Vec<Vec<Step>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    calls: f64,
    failures: f64,
    allowed: Option<f64>,
}

impl Steps {
    fn new(reading: &Reading) -> Self {
        let functions =
            reading.fine.iter().map(|(_, functions, _)| functions.len()).max().unwrap_or_default();
        let dependencies = reading.dependencies.len();
        let mut steps = Self {
            moments_s: (0..STEPS).map(|step| (step as f64 - STEPS as f64) * STEP as f64).collect(),
            functions: vec![vec![[0.0; 3]; STEPS]; functions],
            dependencies: vec![vec![Step::default(); STEPS]; dependencies],
        };
        for (age, functions, dependencies) in &reading.fine {
            let back = usize::try_from(age.saturating_sub(1) / STEP).unwrap_or(usize::MAX);
            let Some(place) = (STEPS - 1).checked_sub(back) else { continue };
            for (sums, counts) in steps.functions.iter_mut().zip(functions) {
                if let Some(sum) = sums.get_mut(place) {
                    let more = [counts.completed(), counts.reduced(), counts.not_completed()];
                    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more as f64);
                }
            }
            for (sums, calls) in steps.dependencies.iter_mut().zip(dependencies) {
                if let Some(sum) = sums.get_mut(place) {
                    sum.calls += f64::from(calls.calls);
                    sum.failures += f64::from(calls.failures);
                    sum.allowed = calls.allowed.map(f64::from);
                }
            }
        }
        steps
    }

    fn function(&self, index: usize, name: &str, span: Span) -> Svg {
        let of = |part: usize| -> Vec<f64> {
            let steps = self.functions.get(index).into_iter().flatten();
            steps.map(|sums| sums.get(part).copied().unwrap_or_default()).collect()
        };
        let sum = |part| of(part).iter().sum::<f64>();
        let description = format!(
            "In the last quarter of an hour {} requests were completed, {} reduced and {} not completed.",
            sum(0),
            sum(1),
            sum(2)
        );
        let frame =
            Frame::new(&format!("f{index}"), &format!("{name}: what requests came to"), &description, span);
        let layers = [
            Layer::new("completed", Hue::Normal, of(0)),
            Layer::new("reduced", Hue::Fallback, of(1)),
            Layer::new("not completed", Hue::Failed, of(2)),
        ];
        stacked(&frame.sized(400, 170), &self.moments_s, &layers, &Scale::Shares)
    }

    fn is_worth_a_picture(&self, index: usize) -> bool {
        let mut steps = self.dependencies.get(index).into_iter().flatten();
        steps.any(|step| step.allowed.is_some() || step.failures > 0.0)
    }

    fn dependency(&self, index: usize, one: &DependencyView, span: Span) -> Svg {
        let steps = self.dependencies.get(index).map_or(&[][..], Vec::as_slice);
        let points = |of: &dyn Fn(&Step) -> Option<f64>| -> Vec<Point> {
            self.moments_s.iter().zip(steps).map(|(at, step)| (*at, of(step))).collect()
        };
        let description = format!(
            "{} is {} and received {} calls per second in the last ten seconds.",
            one.name,
            one.state.word(),
            one.per_second
        );
        let frame =
            Frame::new(&format!("d{index}"), &format!("{}: calls it receives", one.name), &description, span)
                .sized(400, 190)
                .with_bands(self.bands(index));
        let curves = Ramp {
            allowed: points(&|step| step.allowed),
            received: points(&|step| Some(step.calls / STEP as f64)),
            before_per_s: one.usual_per_second,
        };
        ramp(&frame, &curves)
    }

    /// Stretches in which it was not asked, or given its load back.
    fn bands(&self, index: usize) -> Vec<Band> {
        let mut bands: Vec<Band> = Vec::new();
        let steps = self.dependencies.get(index).into_iter().flatten();
        for (from_s, step) in self.moments_s.iter().zip(steps) {
            let to_s = from_s + STEP as f64;
            let (hue, label) = match step.allowed {
                Some(allowed) if allowed > 0.0 => (Hue::Fallback, "load comes back"),
                Some(_) => (Hue::Failed, "not asked"),
                None if step.failures > 0.0 => (Hue::Rejected, "calls fail"),
                None => continue,
            };
            match bands.last_mut().filter(|last| last.label == label && last.to_s >= *from_s) {
                Some(last) => last.to_s = to_s,
                None => bands.push(Band { from_s: *from_s, to_s, hue, label: label.to_owned() }),
            }
        }
        bands
    }

    fn incidents(&self, incidents: &[&IncidentView], view: &View, span: Span) -> Svg {
        let mut rows = Vec::new();
        for incident in incidents {
            let began_s = -(super::page::ago(&incident.began, &view.at).unwrap_or_default() as f64);
            let end_s = began_s + incident.seconds as f64;
            let ends = incident.phases.iter().skip(1).map(|(_, at)| began_s + *at as f64).chain([end_s]);
            // It is certain a little after its first second; what lies between belongs to its first phase.
            let begins = incident.phases.iter().enumerate();
            let begins =
                begins.map(|(index, (_, at))| if index == 0 { began_s } else { began_s + *at as f64 });
            let bands = incident.phases.iter().zip(begins.zip(ends)).map(|((phase, _), (from_s, to_s))| {
                Band { from_s, to_s, hue: phase_hue(phase), label: phase.clone() }
            });
            let number = incident.id.rsplit('-').next().unwrap_or(&incident.id);
            rows.push(Row { name: format!("incident {number}"), bands: bands.collect() });
        }
        for (index, one) in view.dependencies.iter().enumerate() {
            let bands = self.bands(index);
            if !bands.is_empty() && rows.len() < 12 {
                rows.push(Row { name: one.name.clone(), bands });
            }
        }
        let height = 60 + 26 * u32::try_from(rows.len()).unwrap_or(12);
        let lines: Vec<_> = incidents
            .iter()
            .map(|one| {
                format!("{} began at {} and is {}", one.id, super::sentence::time(&one.began), one.phase)
            })
            .collect();
        let frame =
            Frame::new("incidents", "Incidents of the last quarter of an hour", &lines.join("; "), span);
        timeline(&frame.sized(760, height), &rows)
    }
}

pub(super) fn phase_hue(phase: &str) -> Hue {
    match phase {
        "degraded" => Hue::Failed,
        "recovering" => Hue::Fallback,
        "observing" => Hue::First,
        _ => Hue::Normal,
    }
}
