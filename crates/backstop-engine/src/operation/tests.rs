mod absence;
mod begin;
mod property;
mod support;
mod transitions;
