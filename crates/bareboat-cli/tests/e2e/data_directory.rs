//! The data directory: the files a start writes, and those it refuses to replace.

use crate::process::run;
use crate::server::{Home, bareboat};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

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

/// Damages a file: other text in its place, or something that cannot be read, not even by root.
fn damage(path: &Path, readable: bool) {
    std::fs::remove_file(path).unwrap();
    match readable {
        true => std::fs::write(path, "-----BEGIN EC PRIVATE KEY-----\ndamaged\n").unwrap(),
        false => std::fs::create_dir(path).unwrap(),
    }
}

#[test]
fn damaged_keys_of_the_data_directory_are_refused_with_advice() {
    let home = Home::new();
    home.serve().stop();
    let folder = home.data().join("certificates");
    for (name, advice) in [
        ("ca.key", "move both away"),
        ("ca.crt", "move both away"),
        ("front-proxy-ca.key", "move both away"),
        ("front-proxy-ca.crt", "move both away"),
        ("service-accounts.key", "service account tokens"),
    ] {
        let path = folder.join(name);
        let text = std::fs::read(&path).unwrap();
        for readable in [true, false] {
            damage(&path, readable);
            let mut command = bareboat(["serve", "--bind", "127.0.0.1:0", "--data-dir"]);
            let output = run(command.arg(home.data()), "");
            assert_eq!(output.status.code(), Some(1), "{name}: {}", output.all());
            for words in [name, "from a backup", advice] {
                assert!(output.stderr.contains(words), "{name}: {}", output.all());
            }
            match readable {
                true => {
                    let found = std::fs::read_to_string(&path).unwrap();
                    assert!(found.contains("damaged"), "{name} was replaced");
                    std::fs::remove_file(&path).unwrap();
                }
                false => std::fs::remove_dir(&path).unwrap(),
            }
            std::fs::write(&path, &text).unwrap();
        }
    }
    home.serve().stop();
}

#[test]
fn a_damaged_certificate_of_the_server_is_replaced_with_a_warning() {
    let home = Home::new();
    home.serve().stop();
    for (name, why) in [
        ("server.key", "its key cannot be used"),
        ("server.crt", "it is not a certificate"),
    ] {
        damage(&home.data().join("certificates").join(name), true);
        let (status, log) = home.serve().stop();
        assert!(status.success());
        for words in ["WARN", "server.crt", why, "is replaced"] {
            assert!(log.contains(words), "{name}: {log}");
        }
    }
    let (_, log) = home.serve().stop();
    assert!(!log.contains("is replaced"), "{log}");
}
