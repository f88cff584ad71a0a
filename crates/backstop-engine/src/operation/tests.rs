mod absence;
mod begin;
mod model;
mod property;
mod support;
mod transitions;
