//! When agents were last heard. A table of its own: the rows of clusters are large.

use super::change::{Change, Store, commit};
use super::error::StoreError;
use super::identities::Identity;
use super::key::ClusterKey;

/// How many are written by one statement: few sizes, for each is prepared once.
const SIZES: [usize; 4] = [64, 16, 4, 1];

/// An agent was heard, in the change that it made.
pub(crate) async fn heard(change: &mut Change, identity: &Identity, at: i64) -> Result<(), StoreError> {
    sqlx::query(sqlx::AssertSqlSafe(statement(1)))
        .bind(&identity.tenant_id)
        .bind(&identity.cluster_id)
        .bind(at)
        .execute(&mut **change)
        .await?;
    Ok(())
}

impl Store {
    /// Writes when agents were heard, in one change. A later time that is there stays.
    pub(crate) async fn write_contacts(&self, contacts: &[(ClusterKey, i64)]) -> Result<(), StoreError> {
        let mut change = self.change_of("contacts").await?;
        let mut rest = contacts;
        for size in SIZES {
            let statement = statement(size);
            while let Some((some, others)) = rest.split_at_checked(size) {
                rest = others;
                let mut query = sqlx::query(sqlx::AssertSqlSafe(statement.as_str()));
                for (key, at) in some {
                    query = query.bind(&key.tenant_id).bind(&key.cluster_id).bind(at);
                }
                query.execute(&mut *change).await?;
            }
        }
        commit(change).await
    }
}

fn statement(rows: usize) -> String {
    let row = |row: usize| {
        let first = row.saturating_mul(3);
        let [tenant, cluster, at] = [1, 2, 3].map(|column| first.saturating_add(column));
        format!("(${tenant}, ${cluster}, ${at})")
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!(
        "INSERT INTO contacts (tenant_id, cluster_id, contact_at) VALUES {}
         ON CONFLICT (tenant_id, cluster_id) DO UPDATE SET contact_at = excluded.contact_at
         WHERE contacts.contact_at < excluded.contact_at",
        rows.join(", ")
    )
}
