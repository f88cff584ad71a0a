//! One connection, and what was asked on it.
//!
//! Commands are sent one behind the other without waiting, and replies come in the same order. The library keeps the
//! place of a command whose caller has left, and drops its reply when it comes: nobody else ever gets it. What the
//! library could do beyond that is not used: its time limits are on another clock, its handshake tries a second time
//! without the user's name, and its connection manager tries commands again.

use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, RedisError, Value};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::error::{CacheError, Refusal};
use super::guard::{Guard, Watch};
use super::thread::Lane;

/// A command under way.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Value, RedisError>>>>;

/// An open connection. Its socket is closed when it is dropped: each command under way holds it.
pub(super) struct Connection {
    commands: MultiplexedConnection,
    watch: Arc<Watch>,
    driver: AbortHandle,
}

impl Connection {
    /// Takes a stream on which nothing was sent. When it ends, the thread is told.
    pub(super) async fn over(stream: TcpStream, lane: &Lane) -> Result<Rc<Self>, CacheError> {
        let settings = &lane.shared().settings;
        // One byte more than a value may have is asked for, so that one that has more is seen to have.
        let reply_bytes = (settings.value_bytes as u64).saturating_add(1);
        let watch = Arc::new(Watch::default());
        let stream = Guard::new(stream, reply_bytes, Arc::clone(&watch));
        let nothing_is_sent = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            // No command ever waits for room: there are no more of them.
            .set_pipeline_buffer_size((settings.max_in_flight as usize).saturating_add(1));
        let (commands, driver) = MultiplexedConnection::new_with_config(&nothing_is_sent, stream, config)
            .await
            .map_err(|_| CacheError::Connect)?;
        let thread = lane.weak();
        Ok(Rc::new_cyclic(|this| {
            let this = Weak::<Self>::clone(this);
            let driver = tokio::task::spawn_local(async move {
                driver.await;
                if let (Some(thread), Some(this)) = (thread.upgrade(), this.upgrade()) {
                    let why = this.lost();
                    thread.end(&this, why);
                }
            });
            Self { commands, watch, driver: driver.abort_handle() }
        }))
    }

    /// Sends a command as soon as the future is polled.
    pub(super) fn ask(&self, command: Cmd) -> Answering {
        let (mut commands, watch) = (self.commands.clone(), Arc::clone(&self.watch));
        Box::pin(async move {
            watch.ask();
            commands.send_packed_command(&command).await
        })
    }

    /// What an answer says.
    pub(super) fn read(&self, answer: Result<Value, RedisError>) -> Result<Value, CacheError> {
        match answer {
            Ok(Value::ServerError(error)) => Err(CacheError::Server(Refusal::of(error.code()))),
            Ok(value) => Ok(value),
            // The guard lets nothing through that the library cannot read, so this is the connection's end.
            Err(_) => Err(self.lost()),
        }
    }

    fn lost(&self) -> CacheError {
        if self.watch.is_foreign() { CacheError::Protocol } else { CacheError::Reset }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
