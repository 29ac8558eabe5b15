//! Builds the library that is preloaded into the child, once, with the system's C compiler. The tests are skipped where
//! there is no C compiler.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of the library; `None` if it cannot be built. CI requires the library.
pub(crate) fn library() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/torture/preload.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Test binaries may run at the same time, so each builds its own library.
    let library = folder.join(format!("preload-{}.so", std::process::id()));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .args(["-ldl", "-lpthread"])
        .status();
    match built {
        Ok(status) => assert!(status.success(), "{} does not compile", source.display()),
        Err(error) => {
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "{compiler}: {error}"
            );
            println!("left out: {compiler}: {error}");
            return None;
        }
    }
    Some(library)
}

pub(crate) const ENOSPC: u32 = 28;
pub(crate) const EIO: u32 = 5;
pub(crate) const EDQUOT: u32 = 122;
pub(crate) const EROFS: u32 = 30;
pub(crate) const WRITES: u32 = 1 | 4;
pub(crate) const SYNCS: u32 = 2;
/// Writes to the index of the write-ahead log.
pub(crate) const INDEX_WRITES: u32 = 8 | 1 | 4;

/// Controls the faults of the child, which may change at any time.
pub(crate) struct Control {
    file: std::fs::File,
    path: PathBuf,
}

impl Control {
    pub(crate) fn new(path: PathBuf) -> Control {
        std::fs::write(&path, [0; 20]).unwrap();
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        Control { file, path }
    }

    /// Returns the environment of a controlled child.
    pub(crate) fn environment(&self, library: &Path, folder: &Path) -> Vec<(&'static str, String)> {
        vec![
            ("LD_PRELOAD", library.display().to_string()),
            ("TORTURE_DIR", folder.display().to_string()),
            ("TORTURE_CONTROL", self.path.display().to_string()),
        ]
    }

    fn set(&self, place: u64, number: u32) {
        let bytes = number.to_ne_bytes();
        self.file.write_all_at(&bytes, place * 4).unwrap();
    }

    /// From now on, makes `permille` of a thousand of these `calls` fail with `error`.
    pub(crate) fn fail(&self, error: u32, calls: u32, permille: u32) {
        self.set(0, 0);
        self.set(1, calls);
        self.set(2, permille);
        self.set(0, error);
    }

    /// Removes all faults.
    pub(crate) fn heal(&self) {
        self.set(0, 0);
    }

    /// Limits the disk to `kib` KiB; 0 is no limit.
    pub(crate) fn space(&self, kib: u32) {
        self.set(4, kib);
    }

    /// Returns the number of failed calls so far.
    pub(crate) fn failed(&self) -> u32 {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, 12).unwrap();
        u32::from_ne_bytes(bytes)
    }
}

/// A small random generator: the same seed gives the same run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Returns the duration and the seed of a run, from `make torture ARGS="seconds seed"`. The default is a few seconds.
pub(crate) fn plan() -> (std::time::Duration, Dice) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds: u64 = number("TORTURE_SECONDS").unwrap_or(4);
    let seed: u64 = number("TORTURE_SEED").unwrap_or(1);
    println!("seed {seed}, {seconds} s");
    let seed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (std::time::Duration::from_secs(seconds), Dice(seed))
}
