//! The wall clock of a process, which can jump. A library that the process loads first (`tests/torture/clock.c`) reads by how much
//! it is ahead.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The clock of processes that were started with its variables.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl WallClock {
    /// Makes a clock with files in a folder; `None` if there is no C compiler. CI requires it.
    pub fn make(folder: &Path) -> Option<Self> {
        let library = build(folder)?;
        let path = folder.join("clock");
        let file = File::create(&path).unwrap();
        file.write_all_at(&0_i64.to_ne_bytes(), 0).unwrap();
        Some(Self {
            library,
            path,
            file,
        })
    }

    /// Gives a process this clock.
    pub fn wind(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library);
        command.env("TORTURE_CLOCK", &self.path);
    }

    /// Makes the clock jump: from now on it is `seconds` ahead of the clock of the machine.
    pub fn jump(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}

/// Builds the library in a folder.
fn build(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/torture/clock.c");
    let library = folder.join("clock.so");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status();
    match built {
        Ok(status) => assert!(status.success(), "clock.c does not compile"),
        Err(error) => {
            let ci = std::env::var("CI");
            assert_ne!(ci.as_deref(), Ok("true"), "{compiler}: {error}");
            println!("left out: {compiler}: {error}");
            return None;
        }
    }
    Some(library)
}
