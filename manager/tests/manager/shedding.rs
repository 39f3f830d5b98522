//! Who takes more than their share is cut or put off, and everybody else is served meanwhile.

use crate::raw::{address, is_closed, tls};
use crate::support::{Folder, LIMIT, until};
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// A handshake may take 10 s, the head of a request 20 s; with room for a loaded machine.
const CUT_WITHIN: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(28)];

/// Writes a byte every second until the other side has had enough: how long that took.
fn dribble(stream: &mut impl Write, is_cut: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    let bytes = b"GET /healthz HTTP/1.1\r\nx-slow: ".iter().chain(std::iter::repeat(&b'a'));
    for byte in bytes {
        if stream.write_all(&[*byte]).and_then(|()| stream.flush()).is_err() || is_cut() {
            return started.elapsed();
        }
        assert!(started.elapsed() < LIMIT, "never cut");
        thread::sleep(Duration::from_secs(1));
    }
    unreachable!("the bytes have no end")
}

#[test]
fn a_request_or_a_handshake_that_comes_byte_by_byte_is_cut() {
    let folder = Folder::new("slow");
    let manager = folder.serve();
    let (mut head, mut hello) =
        (tls(&manager.url(), &folder.ca(), None), TcpStream::connect(address(&manager.gateway)).unwrap());
    let took = thread::scope(|scope| {
        let hello = scope.spawn(move || {
            let mut other = hello.try_clone().unwrap();
            let other = std::cell::RefCell::new(&mut other);
            // A record of 256 bytes begins, and comes in no time that is allowed.
            hello.write_all(&[22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3]).unwrap();
            dribble(&mut hello, || is_closed(&mut other.borrow_mut()))
        });
        let head = scope.spawn(move || {
            let other = std::cell::RefCell::new(head.sock.try_clone().unwrap());
            dribble(&mut head, || is_closed(&mut other.borrow_mut()))
        });
        [hello.join().unwrap(), head.join().unwrap()]
    });
    assert!(took[0] < CUT_WITHIN[0] && took[1] < CUT_WITHIN[1], "{took:?}");
}

#[test]
fn a_thousand_connections_that_say_nothing_are_shed_while_an_honest_agent_polls() {
    let folder = Folder::new("silent");
    let token = folder.token("acme");
    let manager = folder.serve();
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let gateway = address(&manager.gateway);
    let mut silent: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(gateway).unwrap()).collect();
    let started = Instant::now();
    assert_eq!(agent.polled(0), [queued["command_id"].as_str().unwrap()]);
    // A quarter of them at a time is let in, and has 2 s.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    until("all of them are cut", || {
        silent.retain_mut(|stream| !is_closed(stream));
        silent.is_empty().then_some(())
    });
}

#[test]
fn a_certificate_that_calls_too_often_is_told_when_to_come_again() {
    let folder = Folder::new("agent-rate");
    let token = folder.token("acme");
    let manager = folder.serve_with(&["--agent-rate", "60"]);
    let (greedy, honest) = (manager.cluster(&token, "prod"), manager.cluster(&token, "test"));
    let mut answered = 0;
    let refused = until("it is put off", || {
        let answer = greedy.poll(0);
        answered += usize::from(answer.status == 200);
        (answer.status != 200).then_some(answer)
    });
    // Half a minute's calls at once, and what came due meanwhile.
    assert!((30..60).contains(&answered), "{answered}");
    assert_eq!((refused.status, refused.retry_after.as_deref()), (429, Some("1")), "{refused:?}");
    assert_eq!(refused.body["error"], "too_many_requests");
    assert_eq!(honest.poll(0).status, 200);
    until("its time has come", || (greedy.poll(0).status == 200).then_some(()));
}

#[test]
fn a_token_that_calls_too_often_is_told_when_to_come_again() {
    let folder = Folder::new("token-rate");
    let (greedy, honest) = (folder.token("acme"), folder.token("acme"));
    let manager = folder.serve_with(&["--token-rate", "60"]);
    let mut answered = 0;
    let refused = until("it is put off", || {
        let answer = manager.get(&greedy, "/api/v1/clusters");
        answered += usize::from(answer.status == 200);
        (answer.status != 200).then_some(answer)
    });
    assert!((30..60).contains(&answered), "{answered}");
    assert_eq!((refused.status, refused.retry_after.as_deref()), (429, Some("1")), "{refused:?}");
    assert_eq!(
        (refused.content_type.as_str(), &refused.body["code"]),
        ("application/problem+json", &"too_many_requests".into())
    );
    assert_eq!(manager.get(&honest, "/api/v1/clusters").status, 200);
    until("its time has come", || (manager.get(&greedy, "/api/v1/clusters").status == 200).then_some(()));
}
