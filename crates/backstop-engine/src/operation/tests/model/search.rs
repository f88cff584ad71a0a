//! The search: breadth first, so that a trace to what is wrong is as short as any.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::steps::{Label, steps};
use super::world::{Variant, World};

#[derive(Debug)]
pub(super) enum Found {
    Holds { states: usize, most_forwards: u8, stuck: usize },
    Violated { why: &'static str, states: usize, trace: Vec<Label> },
}

impl Found {
    #[expect(
        clippy::disallowed_macros,
        clippy::print_stdout,
        reason = "figures of a search, shown when its test is"
    )]
    pub(super) fn print(&self, name: &str) {
        match self {
            Found::Holds { states, most_forwards, stuck } => {
                println!("{name}: holds in {states} states; most forwards {most_forwards}; stuck {stuck}");
            }
            Found::Violated { why, states, trace } => {
                println!("{name}: {why}, after {states} states, in {} steps:", trace.len());
                let steps = trace.iter().map(|(label, at)| match at {
                    9 => (*label).to_owned(),
                    at => format!("{label} @{at}"),
                });
                println!("    {}", steps.collect::<Vec<_>>().join(" -> "));
            }
        }
    }
}

/// Multiplies and rotates: worlds are many and no adversary chooses them.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

pub(super) fn search(variant: &Variant) -> Found {
    let mut worlds = vec![World::START];
    let mut numbers: HashMap<World, u32, BuildHasherDefault<Mix>> = HashMap::default();
    numbers.insert(World::START, 0);
    let mut from: Vec<(u32, Label)> = vec![(0, ("", 9))];
    // Where each step came from and led to, for the way back.
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut most_forwards = 0;
    let mut at = 0;
    while let Some(&world) = worlds.get(at) {
        most_forwards = most_forwards.max(world.forwards);
        if let Some(why) = world.wrong(variant) {
            return Found::Violated { why, states: worlds.len(), trace: trace(&from, at) };
        }
        for (label, next) in steps(world, variant) {
            let number = *numbers.entry(next).or_insert_with(|| {
                worlds.push(next);
                from.push((at as u32, label));
                (worlds.len() - 1) as u32
            });
            edges.push((number, at as u32));
        }
        at += 1;
    }
    Found::Holds { states: worlds.len(), most_forwards, stuck: stuck(&worlds, edges) }
}

fn trace(from: &[(u32, Label)], mut at: usize) -> Vec<Label> {
    let mut trace = Vec::new();
    while at != 0 {
        let (before, label) = from[at];
        trace.push(label);
        at = before as usize;
    }
    trace.reverse();
    trace
}

/// How many worlds there are from which no way leads to rest.
fn stuck(worlds: &[World], mut edges: Vec<(u32, u32)>) -> usize {
    edges.sort_unstable();
    let mut first = vec![edges.len(); worlds.len() + 1];
    for (index, (to, _)) in edges.iter().enumerate().rev() {
        first[*to as usize] = index;
    }
    for at in (0..worlds.len()).rev() {
        first[at] = first[at].min(first[at + 1]);
    }
    let mut is_good: Vec<bool> = worlds.iter().map(World::is_at_rest).collect();
    let mut todo: Vec<usize> = (0..worlds.len()).filter(|&at| is_good[at]).collect();
    while let Some(at) = todo.pop() {
        for (_, before) in &edges[first[at]..first[at + 1]] {
            if !std::mem::replace(&mut is_good[*before as usize], true) {
                todo.push(*before as usize);
            }
        }
    }
    is_good.iter().filter(|is_good| !**is_good).count()
}
