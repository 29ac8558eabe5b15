//! A disk that fails like one that loses its power: every call fails with EIO, and what was not synced is lost. It is a file system in
//! a file, which only root can mount. The file is in memory, so that other programs that use the real disk do not delay it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Stops an ext4 file system at once (`EXT4_IOC_SHUTDOWN`), without writing its journal.
const SHUTDOWN: &str = r#"open(my $disk, "<", $ARGV[0]) or die; my $how = pack("I", 2); defined ioctl($disk, 0x8004587d, $how) or die"#;

/// A mounted file system in a file.
#[derive(Debug)]
pub struct FailingDisk {
    image: PathBuf,
    folder: PathBuf,
    /// Takes the file system away when the test program ends for any reason.
    guard: Child,
}

impl FailingDisk {
    /// Mounts a file system of `mib` MiB below a folder; `None` if nothing can be mounted here. CI requires it.
    pub fn mount(below: &Path, mib: usize) -> Option<Self> {
        let (memory, folder) = (below.join("memory"), below.join("disk"));
        for made in [&memory, &folder] {
            std::fs::create_dir(made).unwrap();
        }
        let image = memory.join("image");
        let mut tmpfs = Command::new("mount");
        tmpfs.args(["-t", "tmpfs", "bareboat-test"]).arg(&memory);
        let mut truncate = Command::new("truncate");
        truncate.arg(format!("-s{mib}M")).arg(&image);
        let made = succeeds(&mut tmpfs)
            && succeeds(&mut truncate)
            && succeeds(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))
            && attach(&image, &folder)
            && succeeds(Command::new("chmod").arg("777").arg(&folder));
        if !made {
            let why = "nothing can be mounted here";
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
            println!("left out: {why}");
            return None;
        }
        let (disk, memory) = (folder.display(), memory.display());
        let shell = format!("read _; umount -l '{disk}' '{memory}' 2>/dev/null");
        let mut guard = Command::new("sh");
        guard.args(["-c", &shell]).stdin(Stdio::piped());
        Some(Self {
            image,
            guard: guard.spawn().unwrap(),
            folder,
        })
    }

    /// Moves a folder to the disk. A link takes its place.
    pub fn take(&self, folder: &Path) {
        let place = self.folder.join("data");
        assert!(succeeds(
            Command::new("cp").arg("-a").arg(folder).arg(&place)
        ));
        std::fs::remove_dir_all(folder).unwrap();
        std::os::unix::fs::symlink(&place, folder).unwrap();
        assert!(succeeds(Command::new("sync").arg("-f").arg(&place)));
    }

    /// Fails everything from now on. What was not synced is lost.
    ///
    /// The process `user` and its children stand still meanwhile, outside of any call: the kernel may say of a sync that it meets in the middle that it
    /// succeeded, which no real disk does.
    pub fn fail(&self, user: u32) {
        let all = family(user);
        signal("STOP", &all);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !all.iter().all(|pid| stands_still(*pid)) {
            assert!(Instant::now() < deadline, "a process does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut perl = Command::new("perl");
        assert!(succeeds(perl.args(["-e", SHUTDOWN]).arg(&self.folder)));
        signal("CONT", &all);
    }

    /// Makes the disk good again, with what was synced. No program may have a file open.
    pub fn mend(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !succeeds(Command::new("umount").arg(&self.folder)) {
            assert!(Instant::now() < deadline, "a program still uses the disk");
            std::thread::sleep(Duration::from_millis(50));
        }
        // The device of the last mount may not be free yet.
        while !attach(&self.image, &self.folder) {
            assert!(Instant::now() < deadline, "it cannot be mounted");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Returns whether a process that this program started ends by itself within a time.
pub fn has_ended(pid: u32, within: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < within {
        // Z: the process has ended, and its parent has not read its result.
        if matches!(stat(&format!("/proc/{pid}/stat")), None | Some(('Z', _))) {
            println!("it ended after {:?}", start.elapsed());
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Returns the state of a process or thread, and its parent.
fn stat(path: &str) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(path).ok()?;
    // The name is in parentheses; the state and the parent follow.
    let (_, rest) = text.rsplit_once(") ")?;
    let (state, rest) = rest.split_once(' ')?;
    let parent = rest.split(' ').next()?.parse().ok()?;
    Some((state.chars().next()?, parent))
}

/// Returns the numbers that name entries of a folder.
fn numbers(folder: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// Returns a process and its children.
fn family(parent: u32) -> Vec<u32> {
    let of = |pid: &u32| stat(&format!("/proc/{pid}/stat")).map(|(_, parent)| parent);
    let children = numbers("/proc")
        .into_iter()
        .filter(|pid| of(pid) == Some(parent));
    std::iter::once(parent).chain(children).collect()
}

/// Returns whether all threads of a process are stopped, or it has ended.
fn stands_still(pid: u32) -> bool {
    let folder = format!("/proc/{pid}/task");
    let state = |thread| stat(&format!("{folder}/{thread}/stat"));
    let threads = numbers(&folder).into_iter();
    threads
        .filter_map(state)
        .all(|(state, _)| matches!(state, 'T' | 'Z' | 'X'))
}

fn signal(name: &str, pids: &[u32]) {
    for pid in pids {
        // A child may have ended.
        succeeds(Command::new("kill").args([format!("-{name}"), pid.to_string()]));
    }
}

fn attach(image: &Path, folder: &Path) -> bool {
    let mut mount = Command::new("mount");
    succeeds(mount.args(["-o", "loop"]).arg(image).arg(folder))
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
