//! The data directory: the files a start writes, and those it refuses to replace.

use crate::process::run;
use crate::server::{Home, bareboat};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::os::unix::fs::MetadataExt as _;

#[test]
fn the_kubeconfig_holds_a_key_that_every_client_reads_and_is_written_once() {
    let home = Home::new();
    home.serve().stop();
    let text = std::fs::read_to_string(home.kubeconfig()).unwrap();
    let (_, key) = text.split_once("client-key-data: ").unwrap();
    let key = STANDARD.decode(key.trim()).unwrap();
    assert!(key.starts_with(b"-----BEGIN EC PRIVATE KEY-----\n"));
    let written = std::fs::metadata(home.kubeconfig()).unwrap();
    home.serve().stop();
    let found = std::fs::metadata(home.kubeconfig()).unwrap();
    assert_eq!(found.ino(), written.ino(), "it was written again");
    std::fs::write(home.kubeconfig(), "apiVersion: v1\n").unwrap();
    home.serve().stop();
    assert_eq!(std::fs::read_to_string(home.kubeconfig()).unwrap(), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_cannot_be_written_is_a_warning() {
    let home = Home::new();
    home.serve().stop();
    let text = std::fs::read_to_string(home.kubeconfig()).unwrap();
    std::fs::remove_file(home.kubeconfig()).unwrap();
    // A non-empty directory cannot be replaced by a file, not even by root.
    std::fs::create_dir_all(home.kubeconfig().join("in-the-way")).unwrap();
    let server = home.serve();
    let kept = home.path().join("kept.kubeconfig");
    std::fs::write(&kept, text).unwrap();
    let ready = home.client_of(&kept).await;
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    assert_eq!(ready.request_text(request).await.unwrap(), "ok");
    let (status, log) = server.stop();
    assert!(status.success());
    assert!(log.contains("WARN"), "{log}");
    assert!(log.contains("admin.kubeconfig cannot be written"), "{log}");
}

#[test]
fn a_damaged_authority_is_refused_with_advice() {
    let home = Home::new();
    home.serve().stop();
    let key = home.data().join("certificates/ca.key");
    std::fs::write(&key, "-----BEGIN EC PRIVATE KEY-----\ndamaged\n").unwrap();
    let mut command = bareboat(["serve", "--bind", "127.0.0.1:0", "--data-dir"]);
    let output = run(command.arg(home.data()), "");
    assert_eq!(output.status.code(), Some(1), "{}", output.all());
    for words in ["ca.key", "from a backup", "move both away"] {
        assert!(output.stderr.contains(words), "{}", output.all());
    }
    let found = std::fs::read_to_string(&key).unwrap();
    assert!(found.contains("damaged"), "it was replaced");
}
