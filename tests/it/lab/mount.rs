//! A folder as the kubelet mounts a Secret or a token: the names are links through `..data`, which is swapped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The folder.
pub(crate) struct Mount {
    pub(crate) folder: PathBuf,
    versions: u32,
}

impl Mount {
    /// Makes it, with these files.
    pub(crate) fn new(folder: PathBuf, files: &[(&str, String)]) -> Self {
        let mut mount = Self { folder, versions: 0 };
        fs::create_dir_all(&mount.folder).expect("the mount");
        for (name, _) in files {
            symlink(format!("..data/{name}"), mount.folder.join(name)).expect("a link");
        }
        mount.swap(|version| {
            for (name, text) in files {
                fs::write(version.join(name), text).expect("a file");
            }
        });
        mount
    }

    /// Swaps in what `fill` puts into a new version.
    pub(crate) fn swap(&mut self, fill: impl FnOnce(&Path)) {
        self.versions += 1;
        let name = format!("..v{}", self.versions);
        let version = self.folder.join(&name);
        fs::create_dir_all(&version).expect("a version");
        fill(&version);
        let link = self.folder.join("..data_tmp");
        symlink(&name, &link).expect("a link");
        fs::rename(link, self.folder.join("..data")).expect("the swap");
    }

    /// Swaps in the files of now but for one, which `change` changes.
    pub(crate) fn swap_one(&mut self, name: &str, change: impl FnOnce(String) -> String) {
        let before = self.folder.join(format!("..v{}", self.versions));
        self.swap(|version| {
            for file in fs::read_dir(before).expect("a version").map(|file| file.expect("a file")) {
                fs::copy(file.path(), version.join(file.file_name())).expect("a copy");
            }
            let text = fs::read_to_string(version.join(name)).expect("the file");
            fs::write(version.join(name), change(text)).expect("the file");
        });
    }
}
