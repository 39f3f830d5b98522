//! A database that is put back, as docs/MANAGER.md says ("Back up and restore"); the agent is played.

use crate::support::{Agent, Folder, Manager, receipt, served};
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};
use std::fs;
use std::path::Path;

/// The statement of the document that raises a cluster's next sequence above one that was seen.
fn raise(cluster: &str, seen: u64) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/MANAGER.md");
    let text = fs::read_to_string(path).unwrap();
    let begin = text.find("UPDATE clusters").expect("the statement");
    let statement = text[begin..].split('"').next().unwrap();
    let seen = seen.to_string();
    let filled =
        statement.replace("= N + 1", &format!("= {seen} + 1")).replace("<= N", &format!("<= {seen}"));
    filled.replace("'T'", "'acme'").replace("'NAME'", &format!("'{cluster}'"))
}

/// Runs a statement in the database of a manager that is stopped; how many rows it changed.
fn execute(folder: &Folder, statement: &str) -> u64 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = format!("sqlite:{}", folder.join("data/manager.db").display());
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect(&database).await.unwrap();
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        done.rows_affected()
    })
}

/// The files of the database.
const FILES: [&str; 3] = ["manager.db", "manager.db-wal", "manager.db-shm"];

/// Puts the files of one folder into another, in place of those that are there.
fn put(from: &Path, to: &Path) {
    for file in FILES {
        drop(fs::remove_file(to.join(file)));
        if from.join(file).exists() {
            fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
}

/// Queues a command, and answers it as its agent does; its sequence.
fn commanded(manager: &Manager, token: &str, agent: &Agent) -> u64 {
    let queued = manager.queue(token, "prod");
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    queued["sequence"].as_u64().unwrap()
}

/// The tokens, in the order in which they were made.
fn tokens(folder: &Folder) -> Vec<String> {
    let listed: Value = serde_json::from_slice(&folder.run(&["token", "list", "-o", "json"]).stdout).unwrap();
    let tokens = listed["tokens"].as_array().unwrap();
    tokens.iter().map(|token| token["token_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_database_that_is_put_back_knows_what_it_knew_and_goes_on_above_what_was_seen() {
    let (folder, token, manager) = served("put-back");
    let before = tokens(&folder);
    let stolen = folder.token("acme");
    let stolen_id = tokens(&folder).into_iter().find(|id| !before.contains(id)).unwrap();
    manager
        .post(&token, "/api/v1/clusters", &json!({ "cluster_id": "prod", "namespace": "navin" }))
        .expect(201);
    let former = manager.issue(&token, "prod");
    let agent = |issued: &Value, manager: &Manager| Agent::new(issued, &manager.gateway);
    assert_eq!(commanded(&manager, &token, &agent(&former, &manager)), 1);
    manager.kill();
    let (data, backup) = (folder.join("data"), folder.join("backup"));
    fs::create_dir(&backup).unwrap();
    put(&data, &backup);

    // After the backup: a token and an identity are withdrawn, two commands are carried out.
    let manager = folder.serve();
    assert!(folder.run(&["token", "revoke", &stolen_id]).status.success());
    manager.get(&stolen, "/api/v1/clusters").expect(401);
    let newer = manager.issue(&token, "prod");
    agent(&former, &manager).poll(0).expect(403);
    assert_eq!(commanded(&manager, &token, &agent(&newer, &manager)), 2);
    assert_eq!(commanded(&manager, &token, &agent(&newer, &manager)), 3);
    manager.kill();

    // Put back, it takes for good what it took for good, and for unknown what it did not know.
    put(&backup, &data);
    let manager = folder.serve();
    manager.get(&stolen, "/api/v1/clusters").expect(200);
    agent(&former, &manager).poll(0).expect(200);
    agent(&newer, &manager).poll(0).expect(403);
    assert_eq!(manager.queue(&token, "prod")["sequence"], 2, "given again");
    manager.kill();

    // As the document says: revoked before anything listens, identities anew, the sequence raised.
    assert!(folder.run(&["token", "revoke", &stolen_id]).status.success());
    let manager = folder.serve();
    manager.get(&stolen, "/api/v1/clusters").expect(401);
    let last = manager.issue(&token, "prod");
    agent(&former, &manager).poll(0).expect(403);
    agent(&last, &manager).poll(0).expect(200);
    manager.kill();
    assert_eq!(execute(&folder, &raise("prod", 3)), 1);
    assert_eq!(execute(&folder, &raise("prod", 3)), 0, "it is above already");
    let manager = folder.serve();
    assert_eq!(commanded(&manager, &token, &agent(&last, &manager)), 4);
}
