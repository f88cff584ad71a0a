//! One connection of the generator: takes a request, sends it, reads its answer, and again.

use std::{sync::Arc, time::Duration};

use crate::{
    client::{ClientError, Connection, Response},
    clock::monotonic_ns,
};

use super::{Failure, Sample, queue::Job, run::Shared};

/// The header lines that a sample keeps.
const KEPT: [&str; 2] = ["backstop", "age"];

/// Works until the queue is closed.
pub(crate) async fn work(shared: Arc<Shared>) {
    let mut kept = None;
    while let Some(job) = shared.queue.pop().await {
        shared.tally().sent();
        let (sample, connection) = send(&shared, job, kept.take()).await;
        kept = connection;
        if let Some(on_sample) = &shared.plan.on_sample {
            on_sample(&sample);
        }
        shared.tally().done(sample);
        shared.ring();
    }
}

async fn send(shared: &Shared, job: Job, kept: Option<Connection>) -> (Sample, Option<Connection>) {
    let mut sample = Sample {
        sequence: job.sequence,
        kind: job.kind,
        intended: Duration::from_nanos(job.intended_ns.saturating_sub(shared.started_ns)),
        send_lag: None,
        latency: Duration::ZERO,
        status: None,
        failure: None,
        outcome: None,
        source: None,
        reason: None,
        age_s: None,
        headers: Vec::new(),
        body_bytes: 0,
        right: None,
    };
    let answered = exchange(shared, job, kept, &mut sample).await;
    sample.latency = since(job.intended_ns);
    match answered {
        Ok((response, connection)) => {
            describe(shared, &response, &mut sample);
            (sample, response.keeps_alive().then_some(connection))
        }
        Err(error) => {
            sample.failure = Some(Failure::of_error(&error));
            (sample, None)
        }
    }
}

async fn exchange(
    shared: &Shared,
    job: Job,
    kept: Option<Connection>,
    sample: &mut Sample,
) -> Result<(Response, Connection), ClientError> {
    let prepared = &shared.prepared[job.kind];
    // Bytes that nobody asked for make a connection unfit, as does its end.
    let fit = kept.and_then(|mut kept| (!kept.has_ended() && kept.leftover().is_empty()).then_some(kept));
    let mut connection = match fit {
        Some(connection) => connection,
        None => Connection::open_within(shared.plan.target, shared.plan.timeout).await?,
    };
    let sent = connection.send(&prepared.requests[job.request]).await;
    sample.send_lag = Some(since(job.intended_ns));
    sent?;
    let response = connection.read_response_to(&prepared.method).await?;
    Ok((response, connection))
}

fn describe(shared: &Shared, response: &Response, sample: &mut Sample) {
    sample.status = Some(response.status());
    sample.failure = Failure::of_body(response.completeness);
    sample.body_bytes = response.body.len() as u64;
    match response.mark() {
        Ok(Some(mark)) => {
            (sample.outcome, sample.source) = (Some(mark.outcome), mark.source);
            (sample.reason, sample.age_s) = (mark.reason, mark.age_s);
        }
        Ok(None) => {}
        Err(_) => sample.outcome = Some("unreadable".to_owned()),
    }
    for name in KEPT {
        if let Some(value) = response.header(name) {
            sample.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    if sample.failure.is_none() {
        let check = shared.plan.kinds[sample.kind].check.as_ref();
        sample.right = check.map(|check| check(response));
    }
}

fn since(intended_ns: u64) -> Duration {
    Duration::from_nanos(monotonic_ns().saturating_sub(intended_ns))
}
