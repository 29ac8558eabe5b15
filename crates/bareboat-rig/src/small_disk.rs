//! A small file system for tests of full disks. Mounting needs root; without it the tests are left out, which CI does not
//! accept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mounted file system with a file that can be removed to make space.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

/// The file that takes space until it is removed.
const FILLER: &str = "filler";

impl SmallDisk {
    /// Mounts a file system of `mib` MiB on a folder, with a file of `filler` MiB; `None` if nothing can be mounted here.
    /// CI requires it.
    pub fn mount(folder: &Path, mib: usize, filler: usize) -> Option<Self> {
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={mib}m,mode=777"),
                "bareboat-test",
            ])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            let why = "nothing can be mounted here";
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
            println!("left out: {why}");
            return None;
        }
        let folder = folder.to_owned();
        std::fs::write(folder.join(FILLER), vec![1; filler << 20]).unwrap();
        Some(Self { folder })
    }

    /// Makes space.
    pub fn make_space(&self) {
        std::fs::remove_file(self.folder.join(FILLER)).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a database may still be ending.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}
