//! `doctor`: what is wrong, and what to do about it.

use super::health::RUN_DIR;
use super::run::{environment, kube_access, mounted_namespace};
use super::{Arguments, Exit, Fatal, print, print_bytes, version};
use crate::clock;
use crate::doctor::{Examination, Options};
use crate::identity::DEFAULT_DIR;
use std::path::PathBuf;

const HELP: &str = "\
Usage: navin-cluster-agent doctor [OPTION]...

Looks at all that the agent rests on, and says in one line each how it stands and what to do: the
identity, the API server, the rights there, the CRD, the Lease, the state, the gateway, the clocks and
the agent's threads. It changes nothing, and takes no command. In a pod:
  kubectl exec POD -- /navin-cluster-agent doctor

Options:
  -o json                Print JSON
  --bundle               Print a tar archive with the same and what it rests on: no key, token,
                         signature or spec is in it
  --identity-dir DIR     The agent's identity [default: /etc/navin/identity]
  --kube-api URL, --kube-token-file F, --kube-ca-file F
                         As for 'run'
  --run-dir DIR          As for 'health' [default: /var/lib/navin/run]

Exit codes: 0 nothing is wrong (there may be warnings), 1 something is, 64 wrong command line,
71 the output could not be written.
";

pub(super) fn main(mut arguments: Arguments) -> Result<Exit, Fatal> {
    if arguments.help() {
        return print(HELP);
    }
    let identity_dir = arguments.option_or("--identity-dir", DEFAULT_DIR)?;
    let run_dir = arguments.option_or("--run-dir", RUN_DIR)?;
    let json = match arguments.option("-o")?.as_deref() {
        None => false,
        Some("json") => true,
        Some(other) => return Err(Fatal::new(Exit::Usage, format!("-o {other}: expected json"))),
    };
    let bundle = arguments.flag("--bundle");
    let kube = match kube_access(&mut arguments) {
        Err(fatal) if fatal.exit == Exit::Config => Err(fatal.message),
        other => Ok(other?),
    };
    arguments.end()?;
    let examination = Examination::of(&Options {
        identity_dir: PathBuf::from(identity_dir),
        kube,
        pod_namespace: environment("POD_NAMESPACE").or_else(mounted_namespace),
        run_dir: PathBuf::from(run_dir),
    });
    let now = clock::now();
    if bundle {
        print_bytes(&examination.to_bundle(&version::text(), now))?;
    } else if json {
        print(&format!("{:#}\n", examination.to_json(now)))?;
    } else {
        print(&examination.to_text())?;
    }
    Ok(if examination.is_well() { Exit::Success } else { Exit::Refused })
}
