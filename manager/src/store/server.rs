//! A `PostgreSQL` server, and how far the link to it can be trusted: whoever sits on it reads and writes as the
//! manager does, and so commands every cluster.
//!
//! A server elsewhere proves who it is, unless a weaker mode is asked for by name. That is decided here once, and
//! written into the address: every connection is opened with that.

use crate::process::failure::Failure;
use sqlx::any::AnyConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Error};
use std::net::IpAddr;

/// What is done where the link cannot be made as it should be.
const HELP: &str = "; sslrootcert=FILE in the address names who certifies the server: docs/MANAGER.md, \"The link to PostgreSQL\"";

/// A server's address, which says how its certificate is checked. No `Debug`: it may hold a password.
#[derive(Clone)]
pub(crate) struct Server {
    url: String,
    place: String,
    /// Elsewhere, and not asked to prove who it is: in which mode.
    unproven: Option<PgSslMode>,
}

impl Server {
    /// Reads `postgres://…`. `env_mode` is `PGSSLMODE`, which counts where the address names no mode.
    pub(super) fn parse(text: &str, env_mode: Option<&str>) -> Result<Self, Failure> {
        // The text is not shown: it may hold a password.
        let refused = |error: Error| Failure::Argument(format!("--database: {error}"));
        let mut url = text.parse::<AnyConnectOptions>().map_err(refused)?.database_url;
        let options = PgConnectOptions::from_url(&url).map_err(refused)?;
        let is_local = is_local(&options);
        if !url.query_pairs().any(|(name, _)| matches!(&*name, "sslmode" | "ssl-mode")) {
            let of_env = env_mode.filter(|mode| mode.parse::<PgSslMode>().is_ok());
            if let Some(mode) = of_env.or((!is_local).then_some("verify-full")) {
                url.query_pairs_mut().append_pair("sslmode", mode);
            }
        }
        let mode = PgConnectOptions::from_url(&url).map_err(refused)?.get_ssl_mode();
        let name = options.get_database().unwrap_or_default();
        let place = format!("{name} at {}:{}", options.get_host(), options.get_port());
        let unproven = Some(mode).filter(|mode| !is_local && !matches!(mode, PgSslMode::VerifyFull));
        Ok(Self { url: url.into(), place, unproven })
    }

    /// With which every connection is opened.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Where it is, without user and password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Says that the server is not asked to prove who it is, where that is so.
    pub(super) fn warn(&self) {
        if let Some(sslmode) = self.unproven {
            tracing::warn!(
                database = self.place,
                ?sslmode,
                "the link to the database is not authenticated: whoever sits on it commands every cluster; name sslmode=verify-full"
            );
        }
    }

    /// What to do about an error, where it is the link's.
    pub(super) fn help(error: &Error) -> &'static str {
        let is_links = match error {
            Error::Tls(_) => true,
            // What rustls makes of a certificate that it does not take.
            Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
            _ => false,
        };
        if is_links { HELP } else { "" }
    }
}

/// Whether the link leaves this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(server: &Server) -> PgSslMode {
        server.url().parse::<PgConnectOptions>().expect("an address").get_ssl_mode()
    }

    #[test]
    fn a_server_elsewhere_proves_who_it_is_unless_a_weaker_mode_is_named() {
        use PgSslMode::{Disable, Prefer, Require, VerifyCa, VerifyFull};
        for (url, env_mode, mode, is_told) in [
            ("postgres://u:p@db.example/navin", None, VerifyFull, false),
            ("postgresql://u:p@db.example:5433/navin?application_name=a", None, VerifyFull, false),
            ("postgres://u:p@192.0.2.1/navin#x", None, VerifyFull, false),
            ("postgres://u:p@[2001:db8::1]/navin", None, VerifyFull, false),
            ("postgres://u:p@localhost/navin?host=db.example", None, VerifyFull, false),
            ("postgres://u:p@localhost/navin?hostaddr=192.0.2.1", None, VerifyFull, false),
            ("postgres://u:p@localhost.example/navin", None, VerifyFull, false),
            ("postgres://u:p@db.example/navin?sslmode=verify-full", None, VerifyFull, false),
            ("postgres://u:p@db.example/navin", Some("verify-full"), VerifyFull, false),
            ("postgres://u:p@db.example/navin", Some("verify-ful"), VerifyFull, false),
            ("postgres://u:p@db.example/navin?sslmode=verify-full", Some("disable"), VerifyFull, false),
            ("postgres://u:p@db.example/navin?sslmode=verify-ca", None, VerifyCa, true),
            ("postgres://u:p@db.example/navin?sslmode=require", None, Require, true),
            ("postgres://u:p@db.example/navin?ssl-mode=disable", None, Disable, true),
            ("postgres://u:p@db.example/navin", Some("require"), Require, true),
            ("postgres://u:p@localhost/navin", Some("disable"), Disable, false),
            ("postgres://u:p@db.example/navin?sslmode=prefer", Some("verify-full"), Prefer, true),
            ("postgres://u:p@localhost/navin", None, Prefer, false),
            ("postgres://u:p@127.0.0.1:5433/navin", None, Prefer, false),
            ("postgres://u:p@[::1]/navin", None, Prefer, false),
            ("postgres://u:p@%2Fvar%2Frun%2Fpostgresql/navin", None, Prefer, false),
            ("postgres://u:p@db.example/navin?host=/var/run/postgresql", None, Prefer, false),
            ("postgres://u:p@localhost/navin?sslmode=verify-full", None, VerifyFull, false),
        ] {
            let server = Server::parse(url, env_mode).unwrap_or_else(|failure| panic!("{url}: {failure}"));
            assert_eq!(format!("{:?}", mode_of(&server)), format!("{mode:?}"), "{url} {env_mode:?}");
            assert_eq!(server.unproven.is_some(), is_told, "{url} {env_mode:?}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_refused_without_its_password() {
        for url in [
            "postgres://u:secret@db.example:port/navin",
            "postgres://u:secret@db.example/navin?sslmode=verify-ful",
            "postgres://u:secret@db.example/navin?hostaddr=db.example",
        ] {
            let Err(refused) = Server::parse(url, None) else { panic!("taken: {url}") };
            assert_eq!(refused.exit_code(), 2, "{refused}");
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }

    #[test]
    fn where_a_server_is_is_told_without_user_and_password() {
        for url in [
            "postgres://navin:secret@db.example:5433/fleet",
            "postgres://navin:se%40cret@db.example:5433/fleet?sslmode=require",
            "postgresql://db.example:5433/fleet?user=navin&password=secret@2",
        ] {
            let server = Server::parse(url, None).unwrap_or_else(|failure| panic!("{url}: {failure}"));
            assert_eq!(server.place(), "fleet at db.example:5433", "{url}");
        }
    }
}
