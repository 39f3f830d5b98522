//! The proxies of the environment are not asked: the agent speaks to its two servers and to nobody else.

use crate::agent::{Run, SOON, write_access};
use crate::identity::Identity;
use crate::server::Server;
use navin_test_support::{RunFolder, until};
use serde_json::json;
use std::io::ErrorKind;
use std::net::TcpListener;

#[test]
fn a_proxy_that_the_environment_names_gets_no_connection() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let proxy = format!("http://{}", trap.local_addr().unwrap());
    let mut identity = Identity::issue();
    let server = Server::start(&identity);
    identity.configure(|payload| drop(payload.insert("gateway_url".into(), json!(server.url))));
    let folder = RunFolder::new("proxies");
    identity.write(&folder.path().join("identity"));
    write_access(folder.path(), identity.bytes("ca.crt"));
    let mut run = Run::new("agent", folder.path(), &folder.path().join("identity"));
    let url = run.args.iter().position(|argument| argument == "--kube-api").unwrap() + 1;
    run.args[url] = server.url.as_str().into();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        run.env(name, &proxy);
    }
    let process = run.start();
    let (mut kube, mut gateway) = (false, false);
    until("a request at the API server, and one at the gateway", SOON, || {
        for seen in server.seen.try_iter() {
            gateway |= seen.certified;
            kube |= !seen.certified;
        }
        (kube && gateway).then_some(())
    });
    assert_eq!(trap.accept().map(|_| ()).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    process.terminate();
    assert_eq!(process.wait_exit(SOON), Some(0), "{}", process.stderr_tail());
}
