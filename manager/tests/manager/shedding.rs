//! Who takes more than their share is cut or put off, and everybody else is served meanwhile.

use crate::raw::{Tls, address, is_closed, tls};
use crate::support::{Agent, COMMANDS, Folder, LIMIT, Manager, id, served, until};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

/// A handshake may take 10 s, the head of a request 20 s; with room for a loaded machine.
const CUT_WITHIN: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(28)];

/// How long an agent waits for a connection.
const AGENT_WAITS: Duration = Duration::from_secs(5);

/// A connection from another network, which says so much.
fn one_byte_from(runtime: &Runtime, from: &str, to: SocketAddr) -> Option<TcpStream> {
    let connected = async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(from.parse().unwrap()).unwrap();
        socket.connect(to).await?.into_std()
    };
    let mut stream = runtime.block_on(connected).ok()?;
    stream.write_all(&[22]).ok()?;
    Some(stream)
}

#[test]
fn a_flood_of_one_byte_from_one_network_keeps_nobody_out_of_another() {
    let folder = Folder::new("flood");
    let token = folder.token("acme");
    let manager = folder.serve_with(&["--max-agents", "100"]);
    manager.cluster(&token, "prod");
    let issued = manager.issue(&token, "prod");
    let (to, over) = (address(&manager.gateway), AtomicBool::new(false));
    thread::scope(|scope| {
        let (sender, full) = mpsc::channel();
        let over = &over;
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let mut held = Vec::new();
            for number in 0.. {
                held.extend(one_byte_from(&runtime, "127.9.9.1:0", to));
                if number == 200 {
                    sender.send(()).unwrap();
                }
                if number > 200 {
                    // Some hundred a second.
                    thread::sleep(Duration::from_millis(5));
                    held.retain_mut(|stream| !is_closed(stream));
                }
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        full.recv_timeout(LIMIT).unwrap();
        // Whatever becomes of it, the flood ends.
        let polls = std::panic::catch_unwind(|| {
            for _ in 0..20 {
                let started = Instant::now();
                let answer = Agent::new(&issued, &manager.gateway).try_poll(0);
                assert_eq!(answer.map(|answer| answer.status).ok(), Some(200));
                assert!(started.elapsed() < AGENT_WAITS, "{:?}", started.elapsed());
            }
        });
        over.store(true, Ordering::Relaxed);
        polls.unwrap();
    });
}

#[test]
fn one_connection_above_the_limit_is_told_to_come_again() {
    let folder = Folder::new("too-many");
    let token = folder.token("acme");
    let manager = folder.serve_with(&["--max-agents", "1"]);
    manager.cluster(&token, "prod");
    manager.cluster(&token, "test");
    let [first, second] = ["prod", "test"].map(|cluster| manager.identity(&token, cluster));
    first.poll(0).expect(200);
    let refused = second.poll(0);
    refused.expect_put_off(503, 5);
    assert_eq!(refused.connection.as_deref(), Some("close"));
    first.poll(0).expect(200);
    drop(first);
    until("its place is free", || (second.poll(0).status == 200).then_some(()));
}

/// Makes a call on a new connection, and keeps that; whether it was told that it may.
fn call_and_keep(folder: &Folder, manager: &Manager, token: &str) -> (Tls, bool) {
    let mut stream = tls(&manager.url(), &folder.ca(), None);
    let request =
        format!("GET /api/v1/clusters HTTP/1.1\r\nhost: manager\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    while !answer.contains("\r\n\r\n") {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "{answer}");
        answer.push_str(str::from_utf8(&bytes[..read]).unwrap());
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    (stream, !answer.contains("connection: close"))
}

#[test]
fn a_token_keeps_64_connections_and_its_tenant_128_so_that_others_operators_get_in() {
    let folder = Folder::new("kept");
    let (tokens, other) = ([(); 3].map(|()| folder.token("acme")), folder.token("rival"));
    let manager = folder.serve_with(&["--token-rate", "0"]);
    let mut kept = Vec::new();
    for (token, places) in tokens.iter().zip([64, 64, 0]) {
        let may: Vec<(Tls, bool)> = (0..70).map(|_| call_and_keep(&folder, &manager, token)).collect();
        assert_eq!(may.iter().filter(|(_, may)| *may).count(), places);
        kept.extend(may);
        call_and_keep(&folder, &manager, &other);
    }
    until("the others are closed", || {
        kept.retain_mut(|(stream, _)| !is_closed(&mut stream.sock));
        (kept.len() <= 128).then_some(())
    });
    assert_eq!(kept.len(), 128);
    drop(kept);
    until("its places are free", || call_and_keep(&folder, &manager, &tokens[2]).1.then_some(()));
}

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

/// The number of the other end of a connection among the system's sockets.
fn other_end(stream: &TcpStream) -> u64 {
    let [here, there] = [stream.local_addr(), stream.peer_addr()].map(|address| address.unwrap().port());
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = |field: &str| u16::from_str_radix(field.rsplit(':').next().unwrap(), 16).ok();
    let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|line| port(line[1]) == Some(there) && port(line[2]) == Some(here)).unwrap();
    line[9].parse().unwrap()
}

/// Whether a manager still has its end of a connection, by the number of that among the system's sockets.
fn has_socket(manager: &Manager, number: u64) -> bool {
    let files = fs::read_dir(format!("/proc/{}/fd", manager.process.pid())).unwrap();
    let wanted = PathBuf::from(format!("socket:[{number}]"));
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
}

#[test]
fn who_does_not_read_what_was_asked_for_is_cut_and_who_reads_slowly_is_not() {
    let (folder, token, manager) = served("unread");
    manager.cluster(&token, "prod");
    let arguments = serde_json::json!({ "name": "web", "spec": { "text": "x".repeat(250 * 1024) } });
    let body = serde_json::json!({ "operation": "managedcomponent.apply", "arguments": arguments });
    let queued = manager.post(&token, COMMANDS, &body).expect(201);
    // More than the system takes for a client that does not read.
    let (queued, answers) = (id(&queued), 80);
    let ask = format!("GET {COMMANDS}/{queued} HTTP/1.1\r\nhost: m\r\nauthorization: Bearer {token}\r\n\r\n");
    let [silent, mut slow] = [(); 2].map(|()| {
        let mut client = tls(&manager.url(), &folder.ca(), None);
        client.write_all(ask.repeat(answers).as_bytes()).unwrap();
        client
    });
    let started = Instant::now();
    let ends = [&silent, &slow].map(|client| other_end(&client.sock));
    let mut part = vec![0; 150 * 1024];
    let mut read = 0;
    until("the silent one is cut", || {
        slow.read_exact(&mut part).unwrap();
        read += part.len();
        thread::sleep(Duration::from_secs(1));
        (!has_socket(&manager, ends[0])).then_some(())
    });
    assert!(started.elapsed() > Duration::from_secs(25), "{:?}", started.elapsed());
    assert!(has_socket(&manager, ends[1]));
    while read + part.len() <= answers * 250 * 1024 {
        slow.read_exact(&mut part).unwrap();
        read += part.len();
    }
}

#[test]
fn a_thousand_connections_that_say_nothing_are_cut_while_an_honest_agent_polls() {
    let (_folder, token, manager) = served("silent");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let gateway = address(&manager.gateway);
    let mut silent: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(gateway).unwrap()).collect();
    let started = Instant::now();
    assert_eq!(agent.polled(0), [id(&queued)]);
    assert!(started.elapsed() < AGENT_WAITS, "{:?}", started.elapsed());
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
    refused.expect_put_off(429, 1);
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
    refused.expect_put_off(429, 1);
    assert_eq!(
        (refused.content_type.as_str(), &refused.body["code"]),
        ("application/problem+json", &"too_many_requests".into())
    );
    assert_eq!(manager.get(&honest, "/api/v1/clusters").status, 200);
    until("its time has come", || (manager.get(&greedy, "/api/v1/clusters").status == 200).then_some(()));
}
