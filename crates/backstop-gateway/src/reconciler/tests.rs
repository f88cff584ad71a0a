//! The reconciler against real sockets, with a clock that stands still until a test moves it.

mod absences;
mod apart;
mod budgets;
mod drain;
mod faults;
mod faulty;
mod late;
mod lists;
mod people;
mod upstream;
mod verdicts;
mod wired;
mod world;
