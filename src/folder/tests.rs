//! The folder on a real file system, with what somebody may put into it.

use super::*;
use std::os::unix::fs::symlink;

/// A fresh folder of this test's own, removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> (Self, DirFolder) {
        let path = std::env::temp_dir().join(format!("navin-folder-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("inbox")).unwrap();
        let folder = DirFolder::new(&path.join("inbox"));
        (Self(path), folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn names(folder: &DirFolder) -> Vec<String> {
    let mut names: Vec<String> = folder.list(100).unwrap().into_iter().map(|e| e.name).collect();
    names.sort();
    names
}

#[test]
fn only_commands_without_an_answer_are_listed_and_no_more_than_asked_for() {
    let (_scratch, folder) = Scratch::new("list");
    for name in ["a.json", "b.json", "b.receipt.json", ".c.json", "d.txt", "e.receipt.json"] {
        fs::write(folder.path.join(name), "{}").unwrap();
    }
    // An answer that is a link to nowhere is an answer, and is not followed.
    fs::write(folder.path.join("f.json"), "{}").unwrap();
    symlink("nowhere", folder.path.join("f.receipt.json")).unwrap();
    assert_eq!(names(&folder), ["a.json"]);
    fs::remove_file(folder.path.join("b.receipt.json")).unwrap();
    assert_eq!(names(&folder), ["a.json", "b.json"]);
    assert_eq!(folder.list(1).unwrap().len(), 1);
}

#[test]
fn what_is_not_a_regular_file_with_one_name_is_never_read() {
    let (scratch, folder) = Scratch::new("kinds");
    let secret = scratch.0.join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, folder.path.join("link.json")).unwrap();
    fs::hard_link(&secret, folder.path.join("hard.json")).unwrap();
    fs::create_dir(folder.path.join("dir.json")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(folder.path.join("socket.json")).unwrap();
    for name in ["link.json", "hard.json", "dir.json", "socket.json"] {
        let entry = folder.look(name).unwrap();
        assert!(entry.unreadable.is_some(), "{name}");
        let read = folder.read(&entry, 100);
        assert!(matches!(read, Ok(None) | Err(_)), "{name}: {read:?}");
        // Nor where it is claimed to be an ordinary file.
        let claimed = Entry { unreadable: None, ..entry };
        let read = folder.read(&claimed, 100);
        assert!(matches!(read, Ok(None) | Err(_)), "{name}: {read:?}");
    }
    drop(socket);
}

#[test]
fn a_file_that_has_changed_since_the_look_is_not_taken() {
    let (scratch, folder) = Scratch::new("changed");
    let path = folder.path.join("a.json");
    fs::write(&path, "one").unwrap();
    let entry = folder.look("a.json").unwrap();
    assert_eq!(folder.read(&entry, 100).unwrap().as_deref(), Some(b"one".as_slice()));
    assert_eq!(folder.read(&entry, 2).unwrap().as_deref(), Some(b"on".as_slice()));
    fs::write(scratch.0.join("other"), "two").unwrap();
    fs::rename(scratch.0.join("other"), &path).unwrap();
    assert_eq!(folder.read(&entry, 100).unwrap(), None, "another file of that name and size");
    fs::remove_file(&path).unwrap();
    assert_eq!(folder.read(&entry, 100).unwrap(), None);
    symlink("/etc/passwd", &path).unwrap();
    assert_eq!(folder.read(&entry, 100).unwrap(), None);
}

#[test]
fn what_is_written_replaces_a_link_instead_of_following_it_and_leaves_nothing_else() {
    let (scratch, folder) = Scratch::new("write");
    let other = scratch.0.join("other");
    fs::write(&other, "untouched").unwrap();
    symlink(&other, folder.path.join("a.receipt.json")).unwrap();
    folder.write("a.receipt.json", b"answer", true).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"untouched");
    assert_eq!(fs::read(folder.path.join("a.receipt.json")).unwrap(), b"answer");
    fs::create_dir(folder.path.join("b.receipt.json")).unwrap();
    assert!(folder.write("b.receipt.json", b"answer", true).is_err());
    assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 2, "no temporary file is left");
    folder.remove("a.receipt.json").unwrap();
    folder.remove("a.receipt.json").unwrap();
}

#[test]
fn old_temporary_files_of_ours_are_swept_and_nothing_else() {
    let (_scratch, folder) = Scratch::new("sweep");
    let ours = format!(".{}.tmp", unpredictable().unwrap());
    let others = [".a.tmp", "a.tmp", ".status.json", &format!(".{}.tmp", "x".repeat(32))];
    for name in others.iter().chain([&&*ours]) {
        fs::write(folder.path.join(name), "{").unwrap();
    }
    let written = folder.look(&ours).unwrap().stamp.changed.0;
    let after = |seconds| Timestamp::from_second(written + seconds).unwrap();
    folder.sweep(after(599));
    assert!(folder.look(&ours).is_some(), "it may be written still");
    folder.sweep(after(600));
    assert!(folder.look(&ours).is_none());
    assert!(others.iter().all(|name| folder.look(name).is_some()));
}
