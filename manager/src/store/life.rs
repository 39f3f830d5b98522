//! Which gateways live, on `PostgreSQL`: each holds a lock there.

use super::change::Store;
use super::error::{StoreError, bounded};
use super::server::Server;
use crate::process::clock::now_ms;
use sqlx::{Connection, PgConnection};
use std::time::Duration;

/// A gateway whose machine is gone without a word is missed within half a minute; the lock is waited
/// for only while another takes us for dead, which is done in a moment.
const LIFE_SETTINGS: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
     SET tcp_keepalives_count = 3; SET lock_timeout = '5s'";

/// How often a held connection is asked whether it still is one.
const PING_EVERY: Duration = Duration::from_secs(5);

/// The sign of life of a gateway: a lock that the server lets go of when the process is gone.
pub(crate) struct Life {
    server: Server,
    gateway_id: String,
    connection: PgConnection,
}

impl Life {
    /// Takes the lock, and makes due what dead gateways delivered.
    pub(crate) async fn begin(server: &Server, gateway_id: &str, store: &Store) -> Result<Self, StoreError> {
        let mut connection = PgConnection::connect(server.url()).await?;
        hold(&mut connection, gateway_id).await?;
        store.add_gateway(gateway_id).await?;
        for id in store.gateways().await? {
            if id != gateway_id && try_hold(&mut connection, &id).await? {
                store.remove_gateway(&id).await?;
                release(&mut connection, &id).await?;
                tracing::info!(gateway = id, "a former gateway is gone; what it delivered is due");
            }
        }
        Ok(Self { server: server.clone(), gateway_id: gateway_id.to_owned(), connection })
    }

    /// Keeps the lock, for ever; takes it again where the server was away.
    pub(crate) async fn keep(mut self) {
        loop {
            tokio::time::sleep(PING_EVERY).await;
            let ping = async { Ok(self.connection.ping().await?) };
            if bounded(ping).await.is_ok() {
                continue;
            }
            match bounded(self.again()).await {
                Ok(connection) => self.connection = connection,
                Err(error) => {
                    tracing::warn!(%error, "the database does not answer: others may take this gateway for gone");
                }
            }
        }
    }

    async fn again(&self) -> Result<PgConnection, StoreError> {
        let mut connection = PgConnection::connect(self.server.url()).await?;
        hold(&mut connection, &self.gateway_id).await?;
        // One that took us for dead meanwhile has removed us.
        sqlx::query("INSERT INTO gateways (gateway_id, started_at) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(&self.gateway_id)
            .bind(now_ms())
            .execute(&mut connection)
            .await?;
        Ok(connection)
    }
}

async fn hold(connection: &mut PgConnection, gateway_id: &str) -> Result<(), StoreError> {
    sqlx::raw_sql(LIFE_SETTINGS).execute(&mut *connection).await?;
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 2))")
        .bind(gateway_id)
        .execute(connection)
        .await?;
    Ok(())
}

async fn try_hold(connection: &mut PgConnection, gateway_id: &str) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 2))")
        .bind(gateway_id)
        .fetch_one(connection)
        .await?)
}

async fn release(connection: &mut PgConnection, gateway_id: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_unlock(hashtextextended($1, 2))")
        .bind(gateway_id)
        .execute(connection)
        .await?;
    Ok(())
}
