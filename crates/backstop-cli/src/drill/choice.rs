//! Which drills are played.

use std::time::Duration;

use backstop_lab::drill::ready::{ALL, Ready};
use backstop_lab::drill::{Facts, NoDrill, Samples, Scenario, Skipped, own};
use backstop_policy::DrillSettings;

use crate::args::Drill;

/// The drills of one call, and those that have nothing to rehearse.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) skipped: Vec<Skipped>,
}

impl Chosen {
    /// How long all of them last, without starting and stopping.
    pub(crate) fn duration(&self) -> Duration {
        self.scenarios.iter().map(|scenario| scenario.duration).sum()
    }
}

/// Why there is no drill to play.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoChoice {
    /// There is no ready drill of this name.
    #[error("there is no ready drill `{0}`")]
    Unknown(String),
    /// The drill file asks what cannot be asked.
    #[error(transparent)]
    Impossible(#[from] own::Impossible),
}

/// The drills that the command line names.
pub(crate) fn choose(
    arguments: &Drill,
    facts: &Facts,
    settings: Option<&DrillSettings>,
) -> Result<Chosen, NoChoice> {
    let mut samples =
        settings.map_or_else(|| Ok(Samples::default()), |settings| own::samples(facts, settings))?;
    for (name, values) in &arguments.sample {
        let values = values.split(',').map(|value| value.trim().to_owned());
        samples.values.entry(name.clone()).or_default().extend(values);
    }
    samples.fields.clone_from(&arguments.header);
    let sandbox = settings.is_some_and(|settings| settings.sandbox);
    let mut chosen = Chosen::default();
    if let Some(settings) = settings {
        let file = arguments.drill.as_deref().and_then(|path| path.file_name());
        let name = file.map_or_else(|| "drill".to_owned(), |name| name.to_string_lossy().into_owned());
        chosen.scenarios.push(own::scenario(facts, &name, settings)?);
    }
    for ready in named(arguments, settings.is_some())? {
        match ready.scenario(facts, &samples, sandbox) {
            Ok(scenario) => chosen.scenarios.push(scenario),
            Err(NoDrill { .. }) if arguments.list => {
                chosen.skipped.push(Skipped {
                    name: ready.name.to_owned(),
                    why: "concerns no route of this policy".to_owned(),
                });
            }
            Err(nothing) => {
                chosen.skipped.push(Skipped { name: ready.name.to_owned(), why: nothing.to_string() });
            }
        }
    }
    Ok(chosen)
}

fn named(arguments: &Drill, has_file: bool) -> Result<Vec<Ready>, NoChoice> {
    let by_default = arguments.ready.is_empty() && (!has_file || arguments.list);
    if by_default || arguments.ready.iter().any(|name| name == "all") {
        return Ok(ALL.to_vec());
    }
    let find = |name: &String| Ready::find(name).ok_or_else(|| NoChoice::Unknown(name.clone()));
    arguments.ready.iter().map(find).collect()
}
