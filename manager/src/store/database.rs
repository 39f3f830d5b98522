//! Which database, and how its connections are made.

use super::postgres;
use super::server::Server;
use crate::process::failure::Failure;
use crate::process::files;
use sqlx::any::AnyPoolOptions;
use sqlx::{AnyConnection, AnyPool, Connection};
use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections to the database.
const MAX_CONNECTIONS: u32 = 8;

/// How long a change waits for its turn, or for a connection.
pub(super) const WAIT: Duration = Duration::from_secs(5);

/// What is said where a database was not made yet: what only uses one makes none, for a folder or a name
/// that was mistyped would be one more, and empty.
const MISSING: &str = "missing; `serve` makes it at its first start, or `token --create`";

/// What every connection to `SQLite` is set to: 5 s of waiting for another's write, and on the disk
/// before a commit returns. Half a MiB of pages: a write on another connection makes them worthless.
const SQLITE_SETTINGS: &str = "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL;
     PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -512";

/// What every connection to `PostgreSQL` is set to: nothing waits for ever.
const POSTGRES_SETTINGS: &str = "SET lock_timeout = '5s'; SET statement_timeout = '10s';
     SET idle_in_transaction_session_timeout = '30s'; SET default_transaction_isolation = 'read committed'";

/// The two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file, for the processes of one machine.
    Sqlite,
    /// A server, for many.
    Postgres,
}

impl Kind {
    /// How a change begins.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }
}

/// One database.
#[derive(Clone)]
pub(crate) enum Database {
    /// The file.
    Sqlite(PathBuf),
    /// The server.
    Postgres(Server),
}

impl Database {
    /// Reads `sqlite:FILE` or `postgres://…`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let env_mode = std::env::var("PGSSLMODE").ok();
            return Server::parse(text, env_mode.as_deref()).map(Self::Postgres);
        }
        // Not shown as it came: it may hold a password.
        Err(Failure::Argument("--database: expected sqlite:FILE or postgres://…".to_owned()))
    }

    /// Its kind.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(_) => Kind::Sqlite,
            Self::Postgres(_) => Kind::Postgres,
        }
    }

    /// Opens it, and brings its tables up to date; made where it is not there if `make` says so.
    pub(super) async fn open(&self, make: bool) -> Result<AnyPool, Failure> {
        sqlx::any::install_default_drivers();
        let (url, settings, _lock) = match self {
            Self::Sqlite(path) => {
                let folder = files::folder_of(path);
                if !make && !files::is_there(path)? {
                    return Err(Failure::damaged(path, MISSING));
                }
                files::make_folder(folder)?;
                let lock = files::lock_folder(folder)?;
                // Made here, for SQLite would let everyone read it. What is beside it takes its mode.
                drop(files::open_private(path)?);
                (sqlite_url(path)?, SQLITE_SETTINGS, Some(lock))
            }
            Self::Postgres(server) => {
                server.warn();
                (server.url().to_owned(), POSTGRES_SETTINGS, None)
            }
        };
        // The pool would try again until its time is over, and say of all that goes wrong that it was.
        try_once(&url, settings).await.map_err(|error| self.failed(&error))?;
        let pool = AnyPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(WAIT)
            // A file does not go away; a server may.
            .test_before_acquire(self.kind() == Kind::Postgres)
            .before_acquire(|connection, _| Box::pin(is_usable(connection)))
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    sqlx::raw_sql(settings).execute(connection).await?;
                    Ok(())
                })
            })
            .connect(&url)
            .await
            .map_err(|error| self.failed(&error))?;
        if !make && self.kind() == Kind::Postgres && !postgres::has_tables(&pool).await? {
            return Err(Failure::damaged(Path::new("the database's tables"), MISSING));
        }
        sqlx::migrate!("./migrations").run(&pool).await.map_err(|error| self.failed(&error))?;
        Ok(pool)
    }

    /// What went wrong with it, and which one it is.
    fn failed(&self, error: &dyn Display) -> Failure {
        Failure::Store(format!("database {}: {error}", self.place()))
    }

    /// Where it is, without user and password.
    fn place(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(server) => server.place().to_owned(),
        }
    }
}

/// Opens one connection, and closes it: what goes wrong, as it is.
async fn try_once(url: &str, settings: &'static str) -> Result<(), String> {
    let tried = async {
        let mut connection = AnyConnection::connect(url).await?;
        sqlx::raw_sql(settings).execute(&mut connection).await?;
        connection.close().await
    };
    match tokio::time::timeout(WAIT, tried).await {
        Ok(tried) => tried.map_err(|error| format!("{error}{}", Server::help(&error))),
        Err(_) => Err(format!("no answer within {} s", WAIT.as_secs())),
    }
}

/// Whether a connection has left its last change behind. Where a commit failed for want of room, SQLite
/// has rolled back by itself, and the driver, whose own rollback then fails, would refuse every further
/// change on that connection.
async fn is_usable(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // After a rollback that is still on its way.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// The address of a file: absolute, and with nothing in it that would be read as something else.
fn sqlite_url(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path).map_err(|error| Failure::file(path, error))?;
    let text = path.to_str().ok_or_else(|| Failure::Argument("--data: expected UTF-8".to_owned()))?;
    let mut url = String::from("sqlite://");
    for byte in text.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => url.push(byte.into()),
            _ => write!(url, "%{byte:02X}").unwrap_or_default(),
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_url_is_only_a_path() {
        let url = sqlite_url(Path::new("/a b/c?mode=memory#d%20.db")).expect("a url");
        assert_eq!(url, "sqlite:///a%20b/c%3Fmode%3Dmemory%23d%2520.db");
    }

    #[test]
    fn a_database_of_another_kind_is_refused_without_its_password() {
        let Err(refused) = Database::parse("mysql://navin:secret@db/navin") else { panic!("taken") };
        assert!(!refused.to_string().contains("secret"));
        assert!(Database::parse("sqlite:").is_err());
    }
}
