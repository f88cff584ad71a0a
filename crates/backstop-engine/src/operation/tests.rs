mod absence;
mod begin;
mod model;
mod property;
mod second_look;
mod support;
mod transitions;
