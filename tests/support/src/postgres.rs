//! A PostgreSQL server of the tests' own: in a folder of its own, on a free port, as a user without
//! rights. It ends with this process.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::folder::target_dir;
use crate::process::{Launch, Process};
use crate::wait::until;

/// The password of the superuser, to which nothing but loopback listens.
const PASSWORD: &str = "loopback";

/// Longest until it answers.
const STARTED: Duration = Duration::from_secs(45);

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    port: u16,
}

impl Postgres {
    /// The server that the tests of this process share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Self::start("shared"))
    }

    /// Starts a server.
    pub fn start(name: &str) -> Self {
        Self::launch(name, None)
    }

    /// Starts a server that speaks TLS, with this certificate and its key.
    pub fn start_with_tls(name: &str, certificate: &str, key: &str) -> Self {
        Self::launch(name, Some([("server.crt", certificate), ("server.key", key)]))
    }

    fn launch(name: &str, tls: Option<[(&str, &str); 2]>) -> Self {
        let (user, folder) = folder(name);
        let data = folder.join("data").display().to_string();
        let password = folder.join("password");
        fs::write(&password, PASSWORD).unwrap();
        fs::set_permissions(&password, fs::Permissions::from_mode(0o644)).unwrap();
        let (program, mut arguments) = as_user(user.as_ref(), &program("initdb"));
        let password = format!("--pwfile={}", password.display());
        arguments.extend(
            ["--no-sync", "-U", "navin", "--auth=scram-sha-256", &password, "-D", &data].map(String::from),
        );
        let made = Command::new(program).args(arguments).current_dir(&folder).output().unwrap();
        assert!(made.status.success(), "initdb: {made:?}");
        for (file, text) in tls.into_iter().flatten() {
            let path = folder.join("data").join(file);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if let Some(User { uid, gid }) = user {
                chown(&path, Some(uid), Some(gid)).unwrap();
            }
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (program, mut arguments) = as_user(user.as_ref(), &self::program("postgres"));
        arguments.extend(["-D", &data, "-p", &port.to_string()].map(String::from));
        for setting in
            ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=300"]
        {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        }
        if tls.is_some() {
            arguments.extend(["-c".to_owned(), "ssl=on".to_owned()]);
        }
        let process = Process::start(Launch {
            name: "postgres".into(),
            program,
            args: arguments.into_iter().map(Into::into).collect(),
            envs: vec![],
            folder,
        });
        let server = Self { process, port };
        server.wait_ready();
        server
    }

    /// SIGKILL.
    pub fn kill9(&self) {
        self.process.kill9();
    }

    /// Starts it again, and waits until it answers.
    pub fn restart(&self) {
        self.process.start_again();
        self.wait_ready();
    }

    fn wait_ready(&self) {
        until("PostgreSQL to answer", STARTED, || {
            assert!(self.process.is_running(), "{}", self.process.stderr_tail());
            self.try_run("SELECT 1").ok()
        });
    }

    /// Stops it and the processes of its connections, which say nothing until they are let go on.
    pub fn pause(&self) {
        self.process.pause();
        self.signal_connections("-STOP");
    }

    /// Lets all of them go on.
    pub fn resume(&self) {
        self.signal_connections("-CONT");
        self.process.resume();
    }

    fn signal_connections(&self, signal: &str) {
        let pid = self.process.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        Command::new("kill").arg(signal).args(children.split_whitespace()).status().unwrap();
    }

    /// Makes a database; its address.
    pub fn database(&self, name: &str) -> String {
        self.try_run(&format!("CREATE DATABASE \"{name}\"")).expect("a database");
        self.url(name)
    }

    /// The address of a database.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://navin:{PASSWORD}@127.0.0.1:{}/{name}", self.port)
    }

    fn try_run(&self, statement: &str) -> Result<(), String> {
        let mut psql = Command::new(program("psql"));
        let ran = psql.args(["-X", "-q", &self.url("postgres"), "-c", statement]).output();
        let output = ran.map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// A program of PostgreSQL: in the PATH, or where Debian has it.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = debian.map(|version| version.path().join("bin")).collect();
    folders.extend(std::env::split_paths(&path));
    let found = folders.iter().map(|folder| folder.join(name)).find(|program| program.exists());
    found.unwrap_or_else(|| panic!("no {name}: install Debian's package postgresql"))
}

/// The program as another user, since PostgreSQL does not run as root.
fn as_user(user: Option<&User>, program: &Path) -> (PathBuf, Vec<String>) {
    match user {
        None => (program.to_owned(), Vec::new()),
        Some(user) => {
            let options = [
                format!("--reuid={}", user.uid),
                format!("--regid={}", user.gid),
                "--clear-groups".to_owned(),
                program.display().to_string(),
            ];
            ("setpriv".into(), options.into())
        }
    }
}

/// A user without rights.
struct User {
    uid: u32,
    gid: u32,
}

/// A new folder, and the user that it is for where we are root. Below `target/`, unless that user cannot
/// get there.
fn folder(name: &str) -> (Option<User>, PathBuf) {
    let below = target_dir().join("tmp");
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let user =
        is_root.then(|| ["postgres", "nobody"].into_iter().find_map(known).expect("a user without rights"));
    for below in [below, std::env::temp_dir()] {
        remove_left(&below);
        let folder = below.join(format!("postgres-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        let Some(User { uid, gid }) = user else { return (None, folder) };
        chown(&folder, Some(uid), Some(gid)).unwrap();
        let (program, mut arguments) = as_user(user.as_ref(), Path::new("test"));
        arguments.extend(["-w".to_owned(), folder.display().to_string()]);
        if Command::new(program).args(arguments).status().unwrap().success() {
            return (user, folder);
        }
        fs::remove_dir_all(&folder).ok();
    }
    panic!("no folder that a user without rights can write to");
}

/// Removes the folders of processes that are gone.
fn remove_left(below: &Path) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with("postgres-")) else { continue };
        let pid = name.rsplit('-').next().and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn known(name: &str) -> Option<User> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some(User { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}
