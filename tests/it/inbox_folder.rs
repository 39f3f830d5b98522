//! The inbox's folder as it can be found: strange entries, very many files, none, no inotify. CONTRACT
//! section 7.

use crate::gateway::Scripted;
use crate::inbox_lab::{answer, id, online, options, put, receipt, receipt_now};
use crate::lab::{BOUND, POD, state};
use crate::signer::seconds_from_now;
use navin_test_support::{Agent, say, until};
use serde_json::json;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

#[test]
fn whatever_lies_in_the_folder_nothing_hangs_and_nothing_outside_is_read() {
    let scripted = Scripted::start("inbox-entries", &json!({}));
    let agent = online(&scripted);
    let inbox = agent.inbox();
    let outside = scripted.world.folder().join("outside.json");
    let command = |sequence: u64| {
        scripted.signer.sign(&scripted.signer.apply(&format!("c-{sequence}"), sequence, &json!({})))
    };
    // Each of these would run, were it read.
    fs::write(&outside, command(1).to_string()).unwrap();
    symlink(&outside, inbox.join("link.json")).unwrap();
    symlink("nowhere", inbox.join("dangling.json")).unwrap();
    symlink("/proc/self/environ", inbox.join("proc.json")).unwrap();
    fs::hard_link(&outside, inbox.join("hard.json")).unwrap();
    fs::create_dir(inbox.join("folder.json")).unwrap();
    fs::write(inbox.join("folder.json/inner.json"), command(2).to_string()).unwrap();
    fs::create_dir(inbox.join("..data")).unwrap();
    fs::write(inbox.join("..data/inner.json"), command(3).to_string()).unwrap();
    symlink("..data/inner.json", inbox.join("mounted.json")).unwrap();
    let made = Command::new("mkfifo").arg(inbox.join("fifo.json")).status().expect("mkfifo");
    assert!(made.success());
    let socket = UnixListener::bind(inbox.join("s.json")).expect("a socket");
    let sparse = File::create(inbox.join("sparse.json")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    fs::write(inbox.join("large.json"), " ".repeat(256 * 1024 + 1)).unwrap();
    // Passed over.
    fs::write(inbox.join(".hidden.json"), command(4).to_string()).unwrap();
    fs::write(inbox.join(OsStr::from_bytes(b"not-utf8-\xff.json")), command(5).to_string()).unwrap();
    fs::write(inbox.join("other.txt"), command(6).to_string()).unwrap();
    // A bad answer file is an answer all the same.
    symlink("nowhere", inbox.join("answered.receipt.json")).unwrap();
    put(&agent, "answered", command(7).to_string());

    for name in ["link", "dangling", "proc", "hard", "folder", "mounted", "fifo", "s"] {
        let receipt = receipt(&agent, name);
        assert_eq!(receipt["reason"], "invalid_envelope", "{name}: {receipt}");
        let message = receipt["message"].as_str().expect("a message");
        assert!(
            message.starts_with("not a regular file") || message.contains("hard links"),
            "{name}: {message}"
        );
    }
    for name in ["sparse", "large"] {
        let receipt = receipt(&agent, name);
        assert_eq!(receipt["message"], "larger than 256 KiB", "{name}: {receipt}");
        assert_eq!((&receipt["status"], &receipt["recorded"]), (&json!("refused"), &json!(false)));
    }
    let good = answer(&agent, "good", &command(8));
    assert_eq!(good["status"], "succeeded", "{good}");
    let state = state(&scripted.world);
    assert_eq!(
        state["commands"].as_object().map(serde_json::Map::len),
        Some(1),
        "it alone was read: {state}"
    );
    let at_manager = scripted.gateway.receipts();
    assert!(at_manager.iter().all(|receipt| receipt["command_id"] == good["command_id"]), "{at_manager:?}");
    assert!(agent.process().is_running());
    drop(socket);
}

/// What the process has used of a core, in hundredths of a second.
fn cpu(agent: &Agent) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", agent.process().pid())).expect("a live process");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn two_thousand_files_at_once_get_one_receipt_each_and_then_all_is_quiet() {
    const FILES: u64 = 2_000;
    let scripted = Scripted::start("inbox-many", &json!({}));
    let agent = online(&scripted);
    let started = Instant::now();
    for number in 0..FILES {
        // The state has room for some hundreds of records a window; the rest leaves no trace.
        let mut payload = scripted.signer.delete(&format!("c-{number}"), number + 1);
        if number % 10 > 0 {
            payload["not_before"] = json!(seconds_from_now(-900));
            payload["not_after"] = json!(seconds_from_now(-60));
        }
        put(&agent, &format!("{number}"), scripted.signer.sign(&payload).to_string());
    }
    let answers = || {
        fs::read_dir(agent.inbox())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".receipt.json"))
            .count()
    };
    let wanted = usize::try_from(FILES).unwrap();
    // Another way in stays open meanwhile, and is served first.
    let other = scripted.signer.sign(&scripted.signer.apply("other", FILES + 1, &json!({})));
    let asked = Instant::now();
    assert_eq!(scripted.answer_to(&other)["status"], "succeeded");
    assert!(asked.elapsed() < Duration::from_secs(15), "the gateway's command waited {:?}", asked.elapsed());
    until("every answer", Duration::from_mins(4), || {
        thread::sleep(Duration::from_millis(200));
        (answers() == wanted).then_some(())
    });
    assert!(
        started.elapsed() >= Duration::from_secs(FILES / 20),
        "at most 20 a second: {:?}",
        started.elapsed()
    );
    for number in 0..FILES {
        let receipt = receipt_now(&agent, &number.to_string()).expect("an answer");
        assert_eq!(receipt["status"], if number % 10 > 0 { "refused" } else { "succeeded" }, "{receipt}");
    }
    assert_eq!(agent.count_log("accepted command="), wanted / 10 + 1, "each once");
    assert_eq!(agent.count_log("inbox answered"), wanted, "each once");

    // With the folder watched and full of answered files: no loop of its own making.
    let (scans, used) = (agent.count_log("inbox scanned"), cpu(&agent));
    thread::sleep(Duration::from_secs(10));
    let (scans, used) = (agent.count_log("inbox scanned") - scans, cpu(&agent) - used);
    assert!(scans <= 1, "{scans} scans in 10 s");
    assert!(used <= 20, "{used} hundredths of a second in 10 s");
}

#[test]
fn a_folder_that_is_removed_and_made_again_goes_on() {
    let scripted = Scripted::start("inbox-removed", &json!({}));
    let agent = online(&scripted);
    let command = |sequence: u64| {
        scripted.signer.sign(&scripted.signer.apply(&format!("c-{sequence}"), sequence, &json!({})))
    };
    assert_eq!(answer(&agent, "before", &command(1))["status"], "succeeded");
    for round in 2..5 {
        fs::remove_dir_all(agent.inbox()).unwrap();
        if round == 3 {
            agent.wait_log("inbox not readable", BOUND);
        }
        fs::create_dir(agent.inbox()).unwrap();
        let started = Instant::now();
        assert_eq!(answer(&agent, "after", &command(round))["status"], "succeeded");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
    // Watched again: what comes next is seen at once.
    agent.wait_log("inbox watched", BOUND);
    let started = Instant::now();
    answer(&agent, "next", &command(9));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

/// J01: where inotify has no room, the folder is scanned, and the watch is tried again.
#[test]
fn without_inotify_the_folder_is_scanned_and_the_log_names_the_limit() {
    let limited = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";
    let wrapper = ["unshare", "--user", "--map-root-user", "sh", "-c", limited, "sh"];
    let possible = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").status();
    if !possible.is_ok_and(|status| status.success()) {
        say("not tested here: inotify's limit, which needs a user namespace");
        return;
    }
    let scripted = Scripted::start("inbox-inotify", &json!({}));
    let mut options = options(&scripted.world, POD);
    options.wrapper = wrapper.iter().map(Into::into).collect();
    let agent = scripted.world.agent_with(options);
    agent.wait_leads(&scripted.world.namespace, BOUND);
    agent.wait_log("link=online", BOUND);
    agent.wait_log("the limit of inotify is reached", BOUND);
    for sequence in 1..3 {
        let envelope = scripted.signer.sign(&scripted.signer.apply("ingress", sequence, &json!({})));
        let started = Instant::now();
        let receipt = answer(&agent, &format!("f-{sequence}"), &envelope);
        assert_eq!(
            (&receipt["status"], &receipt["command_id"]),
            (&json!("succeeded"), &json!(id(&envelope)))
        );
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
    assert_eq!(agent.count_log("inbox not watched"), 1, "told once, though tried again");
}

/// J02: what the kubelet lays out for a ConfigMap is links, and none of it is a command, however often it is
/// swapped; a file beside it is.
#[test]
fn a_folder_laid_out_as_a_mounted_volume_has_no_commands_in_it_and_its_swaps_disturb_nobody() {
    let scripted = Scripted::start("inbox-volume", &json!({}));
    let agent = online(&scripted);
    let inbox = agent.inbox();
    let command = |sequence: u64| {
        scripted.signer.sign(&scripted.signer.apply(&format!("c-{sequence}"), sequence, &json!({})))
    };
    symlink("..data/mounted.json", inbox.join("mounted.json")).unwrap();
    for swap in 1..=20 {
        let version = format!("..2026_{swap}");
        fs::create_dir(inbox.join(&version)).unwrap();
        fs::write(inbox.join(&version).join("mounted.json"), command(swap).to_string()).unwrap();
        symlink(&version, inbox.join("..data_tmp")).unwrap();
        fs::rename(inbox.join("..data_tmp"), inbox.join("..data")).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    let mounted = receipt(&agent, "mounted");
    assert_eq!(mounted["message"], "not a regular file", "{mounted}");
    assert_eq!(answer(&agent, "beside", &command(21))["status"], "succeeded");
    assert_eq!(agent.count_log("inbox answered"), 2, "once each");
    assert_eq!(agent.count_log("accepted command="), 1);
}
