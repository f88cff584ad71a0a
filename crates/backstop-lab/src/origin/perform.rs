//! Carries a plan out on a socket.

use bytes::Bytes;
use tokio::{io::AsyncWriteExt as _, net::tcp::WriteHalf, time};

use super::{Then, behaviour::Wait, plan::Plan, plan::Step};

pub(crate) async fn wait(waits: &[Wait]) {
    for wait in waits {
        match wait {
            Wait::For(delay) => time::sleep(*delay).await,
            Wait::At(gate) => gate.pass().await,
        }
    }
}

/// Sends every step. An error means that the peer is gone.
pub(crate) async fn perform(plan: &Plan, write: &mut WriteHalf<'_>) -> std::io::Result<Then> {
    for step in &plan.steps {
        match step {
            Step::Send(bytes) => write.write_all(bytes).await?,
            Step::Pieces(pieces, interval) => send_pieces(write, pieces, *interval).await?,
            Step::Endless(piece, interval) => loop {
                time::sleep(*interval).await;
                write.write_all(piece).await?;
            },
        }
    }
    Ok(plan.then)
}

async fn send_pieces(
    write: &mut WriteHalf<'_>,
    pieces: &[Bytes],
    interval: time::Duration,
) -> std::io::Result<()> {
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            time::sleep(interval).await;
        }
        write.write_all(piece).await?;
    }
    Ok(())
}
