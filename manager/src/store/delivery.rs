//! Which commands go out with an answer. CONTRACT section 4.

use super::change::{Store, commit};
use super::error::StoreError;
use super::identities;
use super::key::ClusterKey;
use crate::process::clock::now_ms;
use sqlx::FromRow;
use std::collections::HashSet;

/// A command without a receipt is delivered again after this time.
pub(crate) const AGAIN_AFTER_MS: i64 = 15_000;

/// Most commands of one answer.
const MAX_COMMANDS: i64 = 64;

/// Most bytes of one answer, with room for what is around the envelopes.
const MAX_BYTES: usize = 4 * 1024 * 1024 - 1024;

/// How many identities one statement looks up: few sizes, for each is prepared once.
const SIZES: [usize; 3] = [1, 8, LARGEST];

/// The largest of them.
const LARGEST: usize = 64;

/// What a poll found.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// The identity is no longer good.
    Revoked,
    /// Nothing is due.
    Nothing,
    /// These envelopes, in the order of their sequence.
    Envelopes(Vec<String>),
}

/// Commands that went out together.
#[derive(Debug)]
pub(crate) struct Sent {
    /// When.
    pub(crate) at: i64,
    /// Which.
    command_ids: Vec<String>,
}

#[derive(FromRow)]
struct Due {
    command_id: String,
    envelope: String,
}

impl Store {
    /// Of these identities those that are good, and that no command is due for. One statement without the
    /// write lock, for this is all that most polls ask.
    pub(crate) async fn at_rest(&self, identity_ids: &[&str]) -> Result<HashSet<String>, StoreError> {
        let now = now_ms();
        let mut at_rest = HashSet::new();
        for some in identity_ids.chunks(LARGEST) {
            // The last one is asked again to make up the number.
            let size = SIZES.into_iter().find(|size| *size >= some.len()).unwrap_or(some.len());
            let last = some.last().into_iter().cycle();
            let mut query = sqlx::query_scalar(sqlx::AssertSqlSafe(at_rest_statement(size)))
                .bind(now)
                .bind(now.saturating_sub(AGAIN_AFTER_MS));
            for identity_id in some.iter().chain(last).take(size) {
                query = query.bind(*identity_id);
            }
            at_rest.extend(query.fetch_all(&self.pool).await?);
        }
        Ok(at_rest)
    }

    /// The clusters that a command is due for.
    pub(crate) async fn due_clusters(&self) -> Result<Vec<ClusterKey>, StoreError> {
        let now = now_ms();
        let due: Vec<(String, String)> = sqlx::query_as(
            "SELECT DISTINCT tenant_id, cluster_id FROM commands
             WHERE receipt_recorded = 0 AND not_before <= $1 AND not_after >= $1
               AND (delivered_at IS NULL OR delivered_at <= $2 OR delivered_at > $1)",
        )
        .bind(now)
        .bind(now.saturating_sub(AGAIN_AFTER_MS))
        .fetch_all(&self.pool)
        .await?;
        Ok(due.into_iter().map(|(tenant_id, cluster_id)| ClusterKey { tenant_id, cluster_id }).collect())
    }

    /// Takes what is due. The time of delivery is written in the same change, so that no other
    /// gateway takes it too. A delivery of the future was before the clock was set back. `note` is told
    /// of it before it is committed: whatever ends from then on, it is known.
    pub(crate) async fn take_due(
        &self,
        key: &ClusterKey,
        identity_id: &str,
        gateway_id: &str,
        note: impl FnOnce(Sent),
    ) -> Result<Delivery, StoreError> {
        let mut change = self.change(key).await?;
        if !identities::is_good(&mut change, identity_id).await? {
            return Ok(Delivery::Revoked);
        }
        let now = now_ms();
        let due: Vec<Due> = sqlx::query_as(
            "SELECT command_id, envelope FROM commands
             WHERE tenant_id = $1 AND cluster_id = $2 AND receipt_recorded = 0
               AND not_before <= $3 AND not_after >= $3
               AND (delivered_at IS NULL OR delivered_at <= $4 OR delivered_at > $3)
             ORDER BY sequence LIMIT $5",
        )
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(now)
        .bind(now.saturating_sub(AGAIN_AFTER_MS))
        .bind(MAX_COMMANDS)
        .fetch_all(&mut *change)
        .await?;
        let (mut taken, mut command_ids) = (Vec::new(), Vec::new());
        let mut bytes: usize = 0;
        for command in due {
            bytes = bytes.saturating_add(command.envelope.len()).saturating_add(1);
            if bytes > MAX_BYTES {
                break;
            }
            sqlx::query(
                "UPDATE commands SET delivered_at = $2, delivered_by = $3, deliveries = deliveries + 1
                 WHERE command_id = $1",
            )
            .bind(&command.command_id)
            .bind(now)
            .bind(gateway_id)
            .execute(&mut *change)
            .await?;
            taken.push(command.envelope);
            command_ids.push(command.command_id);
        }
        if taken.is_empty() {
            return Ok(Delivery::Nothing);
        }
        note(Sent { at: now, command_ids });
        commit(change).await?;
        Ok(Delivery::Envelopes(taken))
    }

    /// Makes due what a gateway delivered to nobody: of these commands, those that were neither answered
    /// nor delivered again since. How many there are.
    pub(crate) async fn make_due(
        &self,
        key: &ClusterKey,
        gateway_id: &str,
        sent: &[Sent],
    ) -> Result<u64, StoreError> {
        let mut change = self.change(key).await?;
        let mut due: u64 = 0;
        for Sent { at, command_ids } in sent {
            for command_id in command_ids {
                let made = sqlx::query(
                    "UPDATE commands SET delivered_at = NULL
                     WHERE command_id = $1 AND delivered_by = $2 AND delivered_at = $3 AND receipts = 0",
                )
                .bind(command_id)
                .bind(gateway_id)
                .bind(*at)
                .execute(&mut *change)
                .await?;
                due = due.saturating_add(made.rows_affected());
            }
        }
        if due > 0 {
            change.wake(key).await?;
            commit(change).await?;
        }
        Ok(due)
    }
}

fn at_rest_statement(identities: usize) -> String {
    let identities: Vec<String> = (3..).take(identities).map(|number| format!("${number}")).collect();
    format!(
        "SELECT identity_id FROM identities
         WHERE identity_id IN ({}) AND revoked_at IS NULL AND NOT EXISTS (SELECT 1 FROM commands
           WHERE commands.tenant_id = identities.tenant_id AND commands.cluster_id = identities.cluster_id
             AND receipt_recorded = 0 AND not_before <= $1 AND not_after >= $1
             AND (delivered_at IS NULL OR delivered_at <= $2 OR delivered_at > $1))",
        identities.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::commands::{self, NewCommand};
    use crate::store::identities::Issued;
    use crate::store::{Database, clusters};
    use std::path::PathBuf;

    /// Removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }

    /// A database beside the test's program, with one cluster, its identity `i` and one command.
    async fn one_command(key: &ClusterKey, test: &str) -> (Folder, Store) {
        let program = std::env::current_exe().expect("a path");
        let folder = Folder(program.with_file_name(format!("delivery-{test}-{}", std::process::id())));
        let database = Database::Sqlite(folder.0.join("manager.db"));
        let store = Store::make(&database).await.expect("a database");
        let mut change = store.change(key).await.expect("a change");
        clusters::insert(&mut change, key, "navin", 60).await.expect("a cluster");
        let now = now_ms();
        let issued = Issued {
            identity_id: "i",
            fingerprint: "f",
            issued_at: now,
            not_after: now,
            max_validity_s: 60,
            gateway_url: "",
        };
        identities::replace(&mut change, key, &issued).await.expect("an identity");
        let command = NewCommand {
            command_id: "c",
            sequence: 1,
            nonce: "n",
            operation: "o",
            name: None,
            envelope: "{}",
            created_at: now,
            created_by: "",
            not_before: now,
            not_after: now.saturating_add(60_000),
        };
        commands::insert(&mut change, key, &command).await.expect("a command");
        commit(change).await.expect("a commit");
        (folder, store)
    }

    /// What is taken, in another millisecond than anything before.
    async fn take(store: &Store, key: &ClusterKey, gateway_id: &str) -> Option<Sent> {
        let now = now_ms();
        while now_ms() == now {
            tokio::task::yield_now().await;
        }
        let mut sent = None;
        store.take_due(key, "i", gateway_id, |taken| sent = Some(taken)).await.expect("a look");
        sent
    }

    /// What is taken after it became due in another way.
    async fn take_anew(store: &Store, key: &ClusterKey, gateway_id: &str) -> Sent {
        sqlx::query("UPDATE commands SET delivered_at = NULL").execute(&store.pool).await.expect("a change");
        take(store, key, gateway_id).await.expect("the command")
    }

    #[tokio::test]
    async fn what_a_connection_was_given_becomes_due_by_its_end_but_not_what_was_delivered_or_answered_since()
    {
        let key = ClusterKey { tenant_id: "acme".into(), cluster_id: "prod".into() };
        let (_folder, store) = one_command(&key, "end").await;
        let due =
            async |gateway_id, sent: &[Sent]| store.make_due(&key, gateway_id, sent).await.expect("a change");
        let first = [take_anew(&store, &key, "here").await];
        assert!(take(&store, &key, "here").await.is_none(), "taken twice");
        let second = [take_anew(&store, &key, "here").await];
        assert_eq!(due("here", &first).await, 0, "it was delivered again here");
        let third = [take_anew(&store, &key, "there").await];
        assert_eq!(due("here", &second).await, 0, "it was delivered again elsewhere");
        assert_eq!(due("here", &third).await, 0, "it was another gateway's");
        assert_eq!(due("there", &third).await, 1);
        let fourth = [take(&store, &key, "here").await.expect("it is due")];
        sqlx::query("UPDATE commands SET receipts = 1").execute(&store.pool).await.expect("a receipt");
        assert_eq!(due("here", &fourth).await, 0, "it was answered");
    }

    #[tokio::test]
    async fn at_rest_are_those_that_are_good_and_have_nothing_due_however_many_are_asked_for() {
        let key = ClusterKey { tenant_id: "acme".into(), cluster_id: "prod".into() };
        let (_folder, store) = one_command(&key, "rest").await;
        let rest = async |ids: &[&str]| store.at_rest(ids).await.expect("a look");
        assert!(rest(&["i"]).await.is_empty(), "a command is due");
        take(&store, &key, "here").await.expect("the command");
        assert!(rest(&[]).await.is_empty());
        for others in [0, 1, 7, 8, 63, 64, 200] {
            let mut ids = vec!["unknown"; others];
            ids.push("i");
            assert_eq!(rest(&ids).await, HashSet::from(["i".to_owned()]), "beside {others}");
        }
        sqlx::query("UPDATE identities SET revoked_at = 1").execute(&store.pool).await.expect("a revocation");
        assert!(rest(&["i"]).await.is_empty(), "it is revoked");
    }
}
