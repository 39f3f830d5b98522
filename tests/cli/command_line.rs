//! Arguments, environment, help, version, and the exit codes of what is wrong with them.

use crate::agent::{self, CLOSED, Run, SOON, only_line, output, parts, program};
use crate::identity::Identity;
use navin_test_support::{RunFolder, until, workspace_dir};
use std::fs::{self, File};
use std::process::Command;

/// A folder with a valid identity, a token and an API server's CA.
fn bench(name: &str) -> RunFolder {
    let folder = agent::folder(name);
    Identity::issue().write(&folder.path().join("identity"));
    folder
}

/// The subcommands that the help names.
fn subcommands() -> Vec<String> {
    let (code, help, stderr) = parts(&output(&["--help"]));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    commands.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn each_subcommand_explains_every_flag_that_it_takes() {
    let commands = subcommands();
    for command in ["run", "health", "doctor", "submit", "verify", "version"] {
        assert!(commands.iter().any(|found| found == command), "{commands:?}");
    }
    for command in commands {
        let source = fs::read_to_string(workspace_dir().join(format!("src/cli/{command}.rs"))).unwrap();
        let source = source.replace("option_or(", "option(");
        let flags: Vec<&str> =
            source.split("option(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(!flags.is_empty() || command == "version", "{command}: no flag found in its source");
        for help in ["--help", "-h"] {
            let (code, stdout, stderr) = parts(&output(&[&command, help]));
            assert_eq!((code, stderr.as_str()), (Some(0), ""), "{command} {help}");
            assert!(stdout.starts_with(&format!("Usage: navin-cluster-agent {command}")), "{stdout}");
            for flag in &flags {
                assert!(stdout.contains(flag), "{command}: its help does not mention {flag}");
            }
        }
    }
    for general in ["help", "--help", "-h"] {
        assert_eq!(parts(&output(&[general])).0, Some(0), "{general}");
    }
}

#[test]
fn the_help_of_run_names_the_exit_codes_and_the_environment() {
    let (_, help, _) = parts(&output(&["run", "--help"]));
    let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for word in ["0", "64", "70", "71", "78", "POD_NAME", "POD_UID", "POD_NAMESPACE", "RUST_LOG"] {
        assert!(words.contains(&word), "{word}");
    }
}

#[test]
fn the_help_of_the_others_names_their_exit_codes() {
    for (command, codes) in [
        ("submit", &["0", "1", "3", "64", "66", "69", "71", "75"][..]),
        ("health", &["0", "1", "64", "71"]),
        ("doctor", &["0", "1", "64", "71"]),
        ("verify", &["0", "1", "64", "66", "71", "78"]),
    ] {
        let (_, help, _) = parts(&output(&[command, "--help"]));
        let words: Vec<&str> = help.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for code in codes {
            assert!(words.contains(code), "{command}: {code}");
        }
    }
}

#[test]
fn the_version_names_the_commit_and_the_crates_that_trust_rests_on() {
    let lock = fs::read_to_string(workspace_dir().join("Cargo.lock")).unwrap();
    let locked = |name: &str| {
        let heading = format!("name = \"{name}\"\nversion = \"");
        let version = lock.split_once(&heading).unwrap().1.split('"').next().unwrap();
        format!("{name} {version}")
    };
    for version in ["version", "--version", "-V"] {
        let (code, stdout, stderr) = parts(&output(&[version]));
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0], format!("navin-cluster-agent {}", env!("CARGO_PKG_VERSION")));
        let commit = lines[1].strip_prefix("commit ").unwrap();
        assert!(!commit.is_empty() && !commit.contains(' '), "{commit:?}");
        for name in ["rustls", "ring", "ed25519-compact"] {
            assert!(lines.contains(&locked(name).as_str()), "{name}: {stdout}");
        }
    }
}

#[test]
fn a_wrong_command_line_is_exit_64_and_one_line_that_names_what_is_wrong() {
    for (args, named) in [
        (&[][..], "expected a command"),
        (&["walk"], "\"walk\""),
        (&["--verbose"], "\"--verbose\""),
        (&["run", "--verbose"], "\"--verbose\""),
        (&["run", "again"], "\"again\""),
        (&["run", "--identity-dir"], "--identity-dir"),
        (&["run", "--kube-api=https://127.0.0.1:1"], "--kube-api, --kube-token-file and --kube-ca-file"),
        (&["run", "--kube-token-file", "t"], "--kube-api, --kube-token-file and --kube-ca-file"),
        (&["run", "--kube-ca-file", "c"], "--kube-api, --kube-token-file and --kube-ca-file"),
        (&["run", "--kube-api", CLOSED, "--kube-ca-file", "c"], "--kube-token-file"),
        (&["run", "--kube-api", CLOSED, "--kube-token-file", "t"], "--kube-ca-file"),
        (&["run", "--kube-token-file", "t", "--kube-ca-file", "c"], "--kube-api"),
        (&["run", "--identity-dir", "a", "--identity-dir", "b"], "\"--identity-dir\""),
        (&["run", "--inbox"], "--inbox"),
        (&["run", "--run-dir"], "--run-dir"),
        (&["health", "now"], "\"now\""),
        (&["health", "--run-dir"], "--run-dir"),
        (&["doctor", "-o", "yaml"], "-o yaml"),
        (&["doctor", "-o"], "-o"),
        (&["doctor", "--verbose"], "\"--verbose\""),
        (&["doctor", "--kube-api", CLOSED], "--kube-token-file"),
        (&["submit"], "expected FILE"),
        (&["submit", "a", "b"], "\"b\""),
        (&["submit", "-", "--inbox"], "--inbox"),
        (&["submit", "-", "--wait-s", "0"], "--wait-s 0"),
        (&["submit", "-", "--wait-s", "3601"], "--wait-s 3601"),
        (&["submit", "-", "--wait-s", "soon"], "--wait-s soon"),
        (&["verify"], "expected FILE"),
        (&["verify", "a", "b"], "\"b\""),
        (&["verify", "-", "--verbose"], "\"--verbose\""),
        (&["verify", "-", "--at"], "--at"),
        (&["version", "please"], "\"please\""),
    ] {
        let (code, stdout, stderr) = parts(&output(args));
        assert_eq!((code, stdout.as_str()), (Some(64), ""), "{args:?}: {stderr}");
        assert!(only_line(&stderr).contains(named), "{args:?}: {stderr}");
    }
    for url in [
        "http://127.0.0.1:1",
        "127.0.0.1:1",
        "https://",
        "https://u:p@a",
        "https://a/b",
        "https://a?b",
        "https://fd00::1:443",
        "https://fd00::1",
        "https://a:0",
        "",
    ] {
        let args = ["run", "--kube-api", url, "--kube-token-file", "t", "--kube-ca-file", "c"];
        let (code, _, stderr) = parts(&output(&args));
        assert_eq!(code, Some(64), "{url}");
        assert!(only_line(&stderr).contains("--kube-api"), "{stderr}");
    }
}

#[test]
fn outside_a_cluster_the_missing_variable_is_named() {
    let folder = bench("cli-in-cluster");
    let identity = folder.path().join("identity");
    for (number, (host, port, named)) in [
        ("", "", "KUBERNETES_SERVICE_HOST"),
        ("", "443", "KUBERNETES_SERVICE_HOST"),
        ("127.0.0.1", "", "KUBERNETES_SERVICE_PORT"),
        ("127.0.0.1", "https", "KUBERNETES_SERVICE_PORT"),
        ("127.0.0.1", "65536", "KUBERNETES_SERVICE_PORT"),
        ("127.0.0.1", "-1", "KUBERNETES_SERVICE_PORT"),
        ("127.0.0.1", "443 ", "KUBERNETES_SERVICE_PORT"),
        ("tcp://127.0.0.1", "443", "KUBERNETES_SERVICE_HOST"),
        ("user@127.0.0.1", "443", "KUBERNETES_SERVICE_HOST"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut run = Run::in_cluster(&number.to_string(), folder.path(), &identity);
        run.env("KUBERNETES_SERVICE_HOST", host);
        run.env("KUBERNETES_SERVICE_PORT", port);
        let (code, line) = run.refused();
        assert!(line.contains(named), "{host:?} {port:?}: {line}");
        assert_eq!(code, Some(78), "{line}");
    }
}

#[test]
fn the_way_to_the_api_server_is_checked_at_start() {
    let folder = bench("cli-kube-ca");
    let (identity, ca) = (folder.path().join("identity"), folder.path().join("kube-ca.crt"));
    for garbage in [None, Some(""), Some("garbage")] {
        match garbage {
            None => fs::remove_file(&ca).unwrap(),
            Some(text) => fs::write(&ca, text).unwrap(),
        }
        let name = format!("{}", garbage.map_or(0, |text| text.len() + 1));
        let (code, line) = Run::new(&name, folder.path(), &identity).refused();
        assert!(line.contains(ca.to_str().unwrap()), "{line}");
        assert_eq!(code, Some(78), "{line}");
    }
}

#[test]
fn a_replica_without_a_pods_name_or_token_starts_all_the_same() {
    let folder = bench("cli-anonymous");
    fs::remove_file(folder.path().join("token")).unwrap();
    let mut run = Run::new("anonymous", folder.path(), &folder.path().join("identity"));
    for name in ["POD_NAME", "POD_UID", "POD_NAMESPACE", "HOSTNAME"] {
        run.env(name, "");
    }
    run.env("RUST_LOG", "debug");
    let process = run.start();
    let line = until("it to start", SOON, || {
        process.stderr_text().lines().find(|line| line.contains(" starting ")).map(str::to_owned)
    });
    let holder = line.split("holder=").nth(1).unwrap();
    let (name, random) = holder.split_once('_').unwrap();
    assert!(!name.is_empty() && random.len() >= 16, "{holder}");
    let token = format!("token not readable file={:?}", folder.path().join("token"));
    let said = until("a second look at the token's file", SOON, || {
        let log = process.stderr_text();
        let about: Vec<String> =
            log.lines().filter(|line| line.contains(&token)).map(str::to_owned).collect();
        (about.len() > 1).then_some(about)
    });
    assert!(said.iter().all(|line| line.ends_with(": the API server is asked without one")), "{said:?}");
    let loud: Vec<bool> = said.iter().map(|line| line.contains(" WARN ")).collect();
    assert!(loud[0] && !loud[1], "said once: {said:?}");
    process.terminate();
    assert_eq!(process.wait_exit(SOON), Some(0));
}

#[test]
fn output_that_cannot_be_written_is_exit_71() {
    for args in [&["version"][..], &["--help"], &["run", "--help"], &["doctor"], &["doctor", "--bundle"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(program()).args(args).stdout(full).output().unwrap();
        let (code, _, stderr) = parts(&output);
        assert_eq!(code, Some(71), "{args:?}");
        assert!(only_line(&stderr).contains("standard output"), "{stderr}");
    }
}
