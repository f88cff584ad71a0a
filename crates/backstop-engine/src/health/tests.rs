mod breaker;
mod calls;
mod forced;
mod generations;
mod opening;
mod probes;
mod support;
