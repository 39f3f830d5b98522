//! What is true of the file alone: its mode, its lock, its end.

use crate::support::{COMMANDS, Folder, Manager, SERVE, receipt, served, until};
use serde_json::json;
use sqlx::{Connection, SqliteConnection};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn while_the_database_is_locked_nothing_is_acknowledged() {
    let (folder, token, manager) = served("locked");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = format!("sqlite:{}", folder.join("data/manager.db").display());
    let mut other = runtime.block_on(SqliteConnection::connect(&database)).unwrap();
    runtime.block_on(sqlx::query("BEGIN IMMEDIATE").execute(&mut other)).unwrap();
    let receipt = receipt(&queued, "succeeded", true);
    let refused = [
        thread::spawn({
            let (rest, token) = (manager.rest.clone(), token.clone());
            move || rest.queue(&token, "prod").unwrap()
        }),
        thread::spawn({
            let (agent, receipt) = (agent.clone(), receipt.clone());
            move || agent.receipt(&receipt)
        }),
    ];
    let started = Instant::now();
    for refused in refused {
        let refused = refused.join().unwrap();
        refused.expect_put_off(503, 5);
    }
    // Each statement waits 5 s for the lock: the receipt's identity is looked up, and noted as heard.
    assert!(started.elapsed() < Duration::from_secs(20));
    runtime.block_on(sqlx::query("ROLLBACK").execute(&mut other)).unwrap();
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "queued");
    assert_eq!(manager.queue(&token, "prod")["sequence"], 2);
    assert_eq!(agent.receipt(&receipt).expect(200), json!({ "recorded": true }));
}

#[test]
fn the_database_is_readable_by_its_owner_alone() {
    let folder = Folder::new("private");
    folder.serve().kill();
    let mode = fs::metadata(folder.join("data/manager.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Serves in a process whose files cannot grow beyond a size: a full disk, for it.
fn serve_with_files_below(folder: &Folder, bytes: u64) -> Manager {
    let served = folder.serving();
    let mut command = Command::new("sh");
    // The signal ignored, a write fails instead; ulimit counts in blocks of 512 bytes.
    command.args(["-c", "trap '' XFSZ; ulimit -S -f $0; exec \"$@\"", &(bytes / 512).to_string()]);
    folder.launch(command.arg(served.get_program()).args(served.get_args()))
}

#[test]
fn while_the_disk_is_full_nothing_is_acknowledged_and_with_room_it_goes_on() {
    let folder = Folder::new("full");
    let token = folder.token("acme");
    let manager = serve_with_files_below(&folder, 512 * 1024);
    let agent = manager.cluster(&token, "prod");
    let arguments = json!({ "name": "web", "spec": { "text": "x".repeat(20_000) } });
    let body = json!({ "operation": "managedcomponent.apply", "arguments": arguments });
    let mut kept = Vec::new();
    until("the disk is full", || {
        let answer = manager.post(&token, COMMANDS, &body);
        if answer.status == 201 {
            kept.push(answer.body);
            return None;
        }
        answer.expect_put_off(503, 5);
        Some(())
    });
    assert!(kept.len() > 5, "{}", kept.len());
    // It goes on answering what needs no room.
    assert_eq!(manager.command(&token, "prod", &kept[0])["envelope"], kept[0]["envelope"]);
    assert_eq!(agent.receipt(&receipt(&kept[0], "succeeded", true)).status, 503);
    // The disk has room.
    let pid = manager.process.pid().to_string();
    let grow = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(grow.unwrap().success());
    let answered = until("the receipt is taken", || {
        let answer = agent.receipt(&receipt(&kept[0], "succeeded", true));
        (answer.status == 200).then_some(answer.body)
    });
    assert_eq!(answered, json!({ "recorded": true }), "a refused receipt was stored");
    for command in &kept[1..] {
        assert_eq!(manager.command(&token, "prod", command)["status"], "queued");
    }
    // On each of its connections to the database.
    for sequence in kept.len() + 1..kept.len() + 20 {
        assert_eq!(manager.queue(&token, "prod")["sequence"], sequence, "what was refused took a sequence");
    }
    manager.kill();
    let shown = folder.serve().command(&token, "prod", &kept[0]);
    assert_eq!((&shown["status"], &shown["receipt_count"]), (&json!("succeeded"), &json!(1)));
}

#[test]
fn a_file_that_is_no_database_is_named_and_no_configuration_that_is_wrong() {
    let folder = Folder::new("no-sqlite");
    folder.token("acme");
    let path = folder.join("data/manager.db");
    fs::write(&path, "not a database".repeat(1_000)).unwrap();
    let output = folder.run(&["token", "list"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let last = format!("navin-manager: database {}: ", path.display());
    assert!(told.starts_with(&last) && told.contains("file is not a database"), "{told}");
}

#[test]
fn a_file_that_cannot_be_looked_at_is_not_called_missing() {
    let folder = Folder::new("not-looked-at");
    // A file on the way: to root too, to whom no mode is a hindrance.
    fs::write(folder.join("data"), "").unwrap();
    let sign = [
        "sign",
        "--tenant",
        "acme",
        "--cluster",
        "prod",
        "--operation",
        "inventory.report",
        "--arguments",
        "{}",
    ];
    for (task, file) in [(&["token", "list"][..], "data/manager.db"), (&sign, "data/tls/signing.key")] {
        let output = folder.run(task);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("{file}: Not a directory")) && !told.contains("missing"), "{told}");
    }
}

#[test]
fn an_older_manager_does_not_start_on_tables_that_a_newer_one_changed() {
    let folder = Folder::new("newer-tables");
    folder.token("acme");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = format!("sqlite:{}", folder.join("data/manager.db").display());
    let mut newer = runtime.block_on(SqliteConnection::connect(&database)).unwrap();
    let changed = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (9999, 'of a newer one', TRUE, x'00', 0)";
    runtime.block_on(sqlx::query(changed).execute(&mut newer)).unwrap();
    runtime.block_on(newer.close()).unwrap();
    let output = folder.run(&SERVE);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("migration 9999 was previously applied but is missing"), "{told}");
}
