//! `run`: the agent.

use super::{Arguments, Exit, Fatal, print};
use crate::agent::{self, KubeAccess, Options};
use crate::clock;
use crate::identity::DEFAULT_DIR;
use crate::rules::config::GatewayUrl;
use std::path::PathBuf;

const HELP: &str = "\
Usage: navin-cluster-agent run [OPTION]...

Options:
  --identity-dir DIR     Folder with config.json, manager.pem, tls.crt, tls.key and ca.crt
                         [default: /etc/navin/identity]
  --kube-api URL         API server, https://host:port [default: the cluster's own, from
                         KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT]
  --kube-token-file F    Bearer token for it, read anew for every request
  --kube-ca-file F       PEM of the only issuers trusted for it
                         (the three go together; without them the mounted ServiceAccount is used)
  --inbox DIR            Folder to take command files from, past the manager; the answer to
                         NAME.json is NAME.receipt.json beside it [default: none]
  --run-dir DIR          Writable folder for the heartbeat that 'health' reads [default: that of
                         --inbox; without either there is none]

Environment:
  POD_NAME, POD_UID      Who this replica is [default: the host's name and a random part]
  POD_NAMESPACE          The pod's own namespace, which must be the configuration's
  RUST_LOG               error, warn, info, debug or trace, also per module [default: info]

SIGTERM and SIGINT: finishes or records what it is doing, gives up the Lease, exits 0.

Exit codes: 0 stopped by a signal, 64 wrong command line, 70 a thread ended unexpectedly,
71 the operating system refused something, 78 the identity or the way to the API server is wrong.
";

/// Largest file with a namespace's name, in bytes.
const NAMESPACE_BYTES: usize = 1024;
/// Where a pod finds its ServiceAccount.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn main(mut arguments: Arguments) -> Result<Exit, Fatal> {
    if arguments.help() {
        return print(HELP);
    }
    let identity_dir = arguments.option_or("--identity-dir", DEFAULT_DIR)?;
    let kube = kube_access(&mut arguments);
    let inbox = arguments.option("--inbox")?;
    let run_dir = arguments.option("--run-dir")?;
    arguments.end()?;
    let kube = kube?;
    start_logging();
    agent::run(&Options {
        identity_dir: PathBuf::from(identity_dir),
        kube,
        pod_name: environment("POD_NAME").or_else(|| environment("HOSTNAME")),
        pod_uid: environment("POD_UID"),
        pod_namespace: environment("POD_NAMESPACE").or_else(mounted_namespace),
        inbox: inbox.map(PathBuf::from),
        run_dir: run_dir.map(PathBuf::from),
    })
}

/// The way to the API server: by the three options, or that of a pod.
pub(super) fn kube_access(arguments: &mut Arguments) -> Result<KubeAccess, Fatal> {
    let api = arguments.option("--kube-api")?;
    let token = arguments.option("--kube-token-file")?;
    let ca = arguments.option("--kube-ca-file")?;
    match (api, token, ca) {
        (Some(url), Some(token), Some(ca)) => {
            Ok(KubeAccess { url: api_url(&url)?, token: PathBuf::from(token), ca: PathBuf::from(ca) })
        }
        (None, None, None) => in_cluster(),
        _ => {
            let message = "--kube-api, --kube-token-file and --kube-ca-file: expected all three or none";
            Err(Fatal::new(Exit::Usage, message))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "with the logging, the only reader of the environment")]
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(super) fn mounted_namespace() -> Option<String> {
    let path = PathBuf::from(SERVICE_ACCOUNT).join("namespace");
    crate::files::read_text(&path, NAMESPACE_BYTES).ok().map(|text| text.trim().to_owned())
}

fn api_url(url: &str) -> Result<String, Fatal> {
    let url = url.trim_end_matches('/');
    if GatewayUrl::parse(url).is_none() {
        let form = "expected https://host:port, an IPv6 address in brackets";
        return Err(Fatal::new(Exit::Usage, format!("--kube-api {url}: {form}")));
    }
    Ok(url.to_owned())
}

fn in_cluster() -> Result<KubeAccess, Fatal> {
    let variable = |name: &str| {
        environment(name).ok_or_else(|| {
            let outside = "outside a cluster give --kube-api, --kube-token-file and --kube-ca-file";
            Fatal::new(Exit::Config, format!("{name}: not set; {outside}"))
        })
    };
    let url = service_url(&variable("KUBERNETES_SERVICE_HOST")?, &variable("KUBERNETES_SERVICE_PORT")?)?;
    let dir = PathBuf::from(SERVICE_ACCOUNT);
    Ok(KubeAccess { url, token: dir.join("token"), ca: dir.join("ca.crt") })
}

/// The API server's URL from its service variables; IPv6 addresses get brackets (RFC 3986 section 3.2.2).
fn service_url(host: &str, port: &str) -> Result<String, Fatal> {
    let Some(port) = port.parse::<u16>().ok().filter(|port| *port > 0) else {
        let message = format!("KUBERNETES_SERVICE_PORT={port:?}: expected a port number");
        return Err(Fatal::new(Exit::Config, message));
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let url = if bare.contains(':') {
        format!("https://[{bare}]:{port}")
    } else {
        format!("https://{bare}:{port}")
    };
    if GatewayUrl::parse(&url).is_none() {
        let message = format!("KUBERNETES_SERVICE_HOST={host:?}: expected an address or a name");
        return Err(Fatal::new(Exit::Config, message));
    }
    Ok(url)
}

/// The level where nothing is said.
const INFO: &str = "info";

/// Lines of `time LEVEL target message` on standard error; the libraries' own only from WARN.
pub(crate) fn start_logging() {
    #[expect(clippy::disallowed_methods, reason = "an empty one is one, too")]
    let wanted = std::env::var("RUST_LOG").unwrap_or_else(|_| INFO.to_owned());
    let taken = is_filter(&wanted);
    env_logger::Builder::new()
        .parse_filters(if taken { &wanted } else { INFO })
        .format(|out, record| {
            use std::io::Write;
            // Below WARN the libraries show whole requests, the token among them: no filter lets that out.
            if record.level() > log::Level::Warn && !record.target().starts_with("navin_cluster_agent") {
                return Ok(());
            }
            let time = clock::now();
            writeln!(out, "{time:.3} {} {} {}", record.level(), record.target(), record.args())
        })
        .init();
    if !taken {
        log::warn!(
            "RUST_LOG={wanted:?}: expected a level, or one for a module of navin_cluster_agent; {INFO} is taken"
        );
    }
}

/// Whether a filter says anything about our lines: a word that is no level would be taken for a module, and nothing told.
fn is_filter(text: &str) -> bool {
    let ours =
        |part: &str| part.contains("navin_cluster_agent") || part.trim().parse::<log::LevelFilter>().is_ok();
    text.split(',').any(ours)
}

#[cfg(test)]
mod tests {
    use super::{is_filter, service_url};

    #[test]
    fn a_filter_that_would_silence_the_agent_by_a_slip_is_none() {
        for good in ["info", "DEBUG", "off", "warn,ureq=error", "navin_cluster_agent::leader=trace"] {
            assert!(is_filter(good), "{good}");
        }
        for bad in ["", "verbose", "DEBGU", "ureq=debug"] {
            assert!(!is_filter(bad), "{bad}");
        }
    }

    /// kube-rs/kube#874, rancher/rancher#55372: host and port joined without brackets.
    #[test]
    fn service_variables_make_a_url_with_brackets_around_ipv6() {
        let url = |host, port| service_url(host, port).map_err(|fatal| fatal.message);
        assert_eq!(url("fd00::1", "443"), Ok("https://[fd00::1]:443".to_owned()));
        assert_eq!(url("[fd00::1]", "443"), Ok("https://[fd00::1]:443".to_owned()));
        assert_eq!(url("10.0.0.1", "6443"), Ok("https://10.0.0.1:6443".to_owned()));
        assert_eq!(url("kubernetes.default", "443"), Ok("https://kubernetes.default:443".to_owned()));
        for (host, port, name) in [
            ("10.0.0.1", "https", "_PORT"),
            ("10.0.0.1", "99999", "_PORT"),
            ("10.0.0.1", "0", "_PORT"),
            ("10.0.0.1", " 443", "_PORT"),
            ("10.0.0.1", "", "_PORT"),
            ("a/b", "443", "_HOST"),
            ("10.0.0.1:6443", "443", "_HOST"),
            ("10.0.0.256", "443", "_HOST"),
            ("fd00::1%eth0", "443", "_HOST"),
            ("fd00::1::2", "443", "_HOST"),
            ("[]", "443", "_HOST"),
        ] {
            assert!(url(host, port).is_err_and(|message| message.contains(name)), "{host} {port}");
        }
    }
}
