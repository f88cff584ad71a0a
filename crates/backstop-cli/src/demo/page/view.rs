//! The page as HTML. Words and pictures are made here from the model; what they look like is the style's matter.

mod pictures;
mod words;

use askama::Template;

use super::POLICY;
use super::button::Button;
use super::lines::PolicyLine;
use super::record::Side;
use super::state::{Row, SideState, State};
use super::world::World;

#[derive(Template)]
#[template(path = "demo.html")]
struct Page<'a> {
    world: &'a World,
    state: &'a State,
    buttons: Vec<Key>,
    /// What is broken now, in words.
    broken: String,
    /// The button that was pressed last.
    pressed: Option<Explained>,
    all: Vec<Explained>,
    columns: [Head<'a>; 2],
    rows: Vec<Line>,
    databases: [Cell; 2],
    max_age_s: f64,
}

/// One button.
struct Key {
    button: Button,
    /// What it is set to: `None` where it does not stay.
    is_broken: Option<bool>,
}

/// What a button does, how to try it, and why.
struct Explained {
    button: Button,
    curls: [(&'static str, String); 2],
    lines: Vec<PolicyLine>,
}

struct Head<'a> {
    side: &'a SideState,
    chart: String,
}

/// One row, both sides.
struct Line {
    slug: &'static str,
    title: &'static str,
    what: String,
    cells: [Cell; 2],
}

/// One side of a row.
struct Cell {
    side: &'static str,
    tone: &'static str,
    headline: String,
    detail: String,
    gauge: Option<Gauge>,
    strip: String,
    shares: String,
    further: Vec<String>,
}

/// A bar with a limit.
struct Gauge {
    label: String,
    value: f64,
    most: f64,
    /// Above this it is too much, where that is not the end.
    high: f64,
}

/// The whole page at this moment.
pub(super) fn render(world: &World) -> Result<String, askama::Error> {
    let state = world.state();
    let explained = |button: Button| Explained {
        button,
        curls: [
            ("Plain", button.curl(world.address(Side::Plain), None)),
            ("Backstop", button.curl(world.address(Side::Backstop), Some(world.admin()))),
        ],
        lines: button.lines(POLICY),
    };
    let is_broken = |button: Button| {
        let known = state.faults.iter().find(|fault| fault.name == button.slug());
        known.map(|fault| fault.is_broken)
    };
    let sides = [&state.plain, &state.backstop];
    Page {
        world,
        buttons: Button::ALL.map(|button| Key { button, is_broken: is_broken(button) }).into(),
        broken: words::broken(&state),
        pressed: state.last.and_then(Button::of).map(explained),
        all: Button::ALL.map(explained).into(),
        columns: sides.map(|side| Head { side, chart: pictures::chart(world, side, &state) }),
        rows: lines(&state),
        databases: sides.map(|side| words::database(side, is_broken(Button::BreakCatalog) == Some(true))),
        max_age_s: state.max_age_s,
        state: &state,
    }
    .render()
}

fn lines(state: &State) -> Vec<Line> {
    let rows = state.plain.rows.iter().zip(&state.backstop.rows);
    rows.map(|(plain, backstop)| {
        let (title, what) = words::row(plain.kind);
        Line {
            slug: plain.kind,
            title,
            what,
            cells: [cell(&state.plain, plain, state), cell(&state.backstop, backstop, state)],
        }
    })
    .collect()
}

fn cell(side: &SideState, row: &Row, state: &State) -> Cell {
    let said = words::now(row, state.max_age_s);
    Cell {
        side: side.name,
        tone: said.tone,
        headline: said.headline,
        detail: said.detail,
        gauge: said.age_s.map(|age| Gauge {
            label: format!("age of the copy in seconds, at most {}", state.max_age_s),
            value: age,
            most: state.max_age_s,
            high: state.max_age_s,
        }),
        strip: pictures::strip(row),
        shares: words::shares(row),
        further: words::further(side, row),
    }
}
