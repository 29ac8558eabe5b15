//! Files that change are read again.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory for one test.
struct TempDirectory(PathBuf);

impl TempDirectory {
    fn new() -> TempDirectory {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bareboat-reload-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        TempDirectory(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Watches files and sends what was loaded; a first file that contains `bad` is rejected.
fn follow(files: WatchedFiles) -> (Following, Receiver<Vec<String>>) {
    let (tell, reported) = sync_channel(64);
    let following = files
        .every(Duration::from_millis(20))
        .start(move |contents| {
            let texts: Vec<String> = (0..contents.0.len())
                .map(|index| contents.text(index).expect("UTF-8").to_owned())
                .collect();
            let refused = texts[0].contains("bad");
            tell.send(texts).expect("somebody listens");
            async move {
                match refused {
                    true => Err("it is bad".to_owned()),
                    false => Ok(()),
                }
            }
        });
    (following, reported)
}

fn next(reported: &Receiver<Vec<String>>) -> Vec<String> {
    let found = reported.recv_timeout(Duration::from_secs(30));
    found.expect("the change is noticed")
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_taken_together_and_bad_ones_counted() {
    let directory = TempDirectory::new();
    let (one, two) = (directory.file("one", "1"), directory.file("two", "2"));
    let metrics = ReloadMetrics::files();
    let mut files = WatchedFiles::new("pair", [&one, &two]).metrics(&metrics);
    assert_eq!(files.read().expect("readable").text(1), Ok("2"));
    let (_following, reported) = follow(files);
    fs::write(&two, "3").expect("written");
    assert_eq!(next(&reported), ["1", "3"]);
    fs::write(&one, "bad").expect("written");
    assert_eq!(next(&reported), ["bad", "3"]);
    // Replaced by a rename, as tools do.
    let fresh = directory.file("fresh", "4");
    fs::rename(fresh, &one).expect("renamed");
    assert_eq!(next(&reported), ["4", "3"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while metrics.count(&["pair", "success"]) != 2 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(metrics.count(&["pair", "failure"]), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_gone_is_a_failure_and_may_come_back() {
    let directory = TempDirectory::new();
    let path = directory.file("it", "first");
    let metrics = ReloadMetrics::controller("authentication");
    let mut files = WatchedFiles::new("it", [&path]).metrics(&metrics);
    files.read().expect("readable");
    let (_following, reported) = follow(files);
    fs::remove_file(&path).expect("removed");
    let deadline = Instant::now() + Duration::from_secs(30);
    while metrics.count(&["failure"]) != 1 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    directory.file("it", "second");
    assert_eq!(next(&reported), ["second"]);
}

#[test]
fn contents_settle_after_two_equal_looks() {
    let directory = TempDirectory::new();
    let path = directory.file("it", "half");
    let paths = [path.clone()];
    let (looks, found) = Looks::default().look(&paths);
    assert!(matches!(found, Found::Unsettled));
    fs::write(&path, "half and the rest").expect("written");
    let (looks, found) = looks.look(&paths);
    assert!(matches!(found, Found::Unsettled));
    let (_, found) = looks.look(&paths);
    let Found::Settled(contents) = found else {
        panic!("nobody wrote since");
    };
    assert_eq!(contents.text(0), Ok("half and the rest"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut files = WatchedFiles::new("it", ["/nowhere/at-all"]);
    let error = files.read().expect_err("there is none").to_string();
    assert!(
        error.starts_with("/nowhere/at-all cannot be read"),
        "{error}"
    );
}
