//! From needing a connection to having one: resolve, connect, say who asks, hear an answer.
//!
//! Opening goes on when the command that began it ends, so that a server that is slower to accept than a command may
//! wait is reached all the same. Each socket address has its own time, which ends with the answer to `PING`: a server
//! that is frozen still accepts connections, because its system does.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, Value};

use super::call::within;
use super::connection::Connection;
use super::error::CacheError;
use super::thread::Lane;
use crate::upstream::Address;
use crate::upstream::checkout::connect;
use crate::upstream::resolve::Asked;

/// After how long a name is looked up again. What was found before goes on being used meanwhile.
const REFRESH: Duration = Duration::from_secs(5);

/// Opens a connection and tells the thread, whatever happens.
pub(super) async fn open(lane: Lane) {
    let mut opening = Opening { lane, outcome: Some(Err(CacheError::Connect)) };
    opening.outcome = Some(opening.lane.reach().await);
}

/// An opening under way. However it ends, those who wait for it learn of it.
struct Opening {
    lane: Lane,
    outcome: Option<Result<Rc<Connection>, CacheError>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take() {
            self.lane.0.opened(outcome);
        }
    }
}

impl Lane {
    async fn reach(&self) -> Result<Rc<Connection>, CacheError> {
        let shared = self.shared();
        let places = shared.settings.addresses.len();
        let first = self.0.first_address();
        let mut why = CacheError::Connect;
        for place in (0..places).cycle().skip(first).take(places) {
            for address in self.resolve(place).await.iter() {
                let end = shared.clock.mono().after(shared.settings.connect);
                let greeted = within(self.greet(*address), &shared.clock, end).await;
                match greeted.unwrap_or(Err(CacheError::Connect)) {
                    Ok(connection) => {
                        shared.answered_last.store(place, Ordering::Relaxed);
                        return Ok(connection);
                    }
                    Err(error) => why = error,
                }
            }
        }
        Err(why)
    }

    async fn resolve(&self, place: usize) -> Arc<[SocketAddr]> {
        let shared = self.shared();
        let name = match (shared.settings.addresses.get(place), shared.names.get(place)) {
            (Some(Address::Literal(address)), _) => return [*address].into(),
            (Some(Address::Name { .. }), Some(Some(name))) => name,
            _ => return [].into(),
        };
        match name.ask(&shared.clock, REFRESH, &self.0.tasks) {
            Asked::Known(addresses) => addresses,
            Asked::Waits(waits) => {
                let end = shared.clock.mono().after(shared.settings.connect);
                let found = within(waits.found(), &shared.clock, end).await;
                found.flatten().unwrap_or_else(|| [].into())
            }
        }
    }

    async fn greet(&self, address: SocketAddr) -> Result<Rc<Connection>, CacheError> {
        let settings = &self.shared().settings;
        let stream = connect(address).await.map_err(|_| CacheError::Connect)?;
        let connection = Connection::over(stream, self).await?;
        let say = async |command: Cmd, expected: Value| {
            let said = connection.read(connection.ask(command).await);
            match said {
                Ok(value) if value == expected => Ok(()),
                Ok(_) => Err(CacheError::Protocol),
                // No command was sent, so none was lost.
                Err(CacheError::Reset) => Err(CacheError::Connect),
                Err(error) => Err(error),
            }
        };
        if let Some(password) = &settings.password {
            let mut auth = redis::cmd("AUTH");
            if let Some(username) = &settings.username {
                auth.arg(&**username);
            }
            auth.arg(&**password);
            say(auth, Value::Okay).await?;
        }
        if settings.database != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(settings.database);
            say(select, Value::Okay).await?;
        }
        say(redis::cmd("PING"), Value::SimpleString("PONG".to_owned())).await?;
        Ok(connection)
    }
}
