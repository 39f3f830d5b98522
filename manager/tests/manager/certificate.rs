//! The server's certificate is replaced under a running manager; one client does not take all places.

use crate::raw::tls;
use crate::support::{Folder, Manager, served, until};
use rustls::pki_types::CertificateDer;
use std::fs;
use std::thread;
use std::time::Duration;

/// The certificate that the server shows, which the manager's authority has issued.
fn shown(folder: &Folder, manager: &Manager) -> CertificateDer<'static> {
    let tls = tls(&manager.url(), &folder.ca(), None);
    tls.conn.peer_certificates().unwrap()[0].clone().into_owned()
}

#[test]
fn a_server_certificate_is_replaced_without_a_restart() {
    let (folder, token, manager) = served("renewed");
    let agent = manager.cluster(&token, "prod");
    let first = shown(&folder, &manager);
    let file = folder.join("data/tls/server.crt");
    let good = fs::read(&file).unwrap();
    let poll = thread::spawn({
        let agent = agent.clone();
        move || agent.poll(12)
    });
    // Damaged: the running one stays.
    fs::write(&file, b"-----BEGIN CERTIFICATE-----\n").unwrap();
    // Longer than between two looks at the files: there is nothing to wait for but that nothing happens.
    thread::sleep(Duration::from_secs(6));
    assert_eq!(shown(&folder, &manager), first);
    // Gone: another is made from the same key.
    fs::remove_file(&file).unwrap();
    let second = until("another certificate is shown", || {
        Some(shown(&folder, &manager)).filter(|certificate| *certificate != first)
    });
    // Replaced by an operator.
    fs::write(&file, &good).unwrap();
    until("the operator's is shown", || (shown(&folder, &manager) == first).then_some(()));
    assert_ne!(first, second);
    poll.join().unwrap().expect(200);
    agent.poll(0).expect(200);
}

#[test]
fn one_identity_has_16_open_requests_and_leaves_room_for_others() {
    let (_folder, token, manager) = served("open-requests");
    let (greedy, other) = (manager.cluster(&token, "prod"), manager.cluster(&token, "test"));
    let polls: Vec<_> = (0..16)
        .map(|_| {
            let greedy = greedy.clone();
            // Our own look below may have taken the place.
            let open = move || Some(greedy.poll(20)).filter(|answer| answer.status != 429);
            thread::spawn(|| until("a place is free", open))
        })
        .collect();
    let refused =
        until("all places are taken", || Some(greedy.poll(0)).filter(|answer| answer.status == 429));
    refused.expect_put_off(429, 5);
    assert_eq!(refused.body["error"], "too_many_requests");
    other.poll(0).expect(200);
    manager.queue(&token, "prod");
    let delivered = polls.into_iter().map(|poll| poll.join().unwrap());
    assert!(delivered.map(|answer| answer.expect(200)).any(|answer| answer["commands"][0].is_object()));
    greedy.poll(0).expect(200);
}
