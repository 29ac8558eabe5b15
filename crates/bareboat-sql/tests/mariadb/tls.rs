//! Tests of encrypted connections and of login methods, also of certificates and passwords that change while a store is
//! open.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bareboat_rig::proxy::Proxy;
use bareboat_sql::Mysql;
use bareboat_storage::Write;

use super::cluster::Cluster;
use super::{object, open};

/// Creates two authorities, and a certificate for `localhost` that the second authority has signed.
fn certificates(folder: &Path) {
    for name in ["other", "ca"] {
        authority(folder, name, 2);
    }
}

/// Creates an authority, and a certificate for `localhost` that it has signed, valid for `days`; negative: expired.
fn authority(folder: &Path, name: &str, days: i32) {
    let script = r#"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
            -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out "$1.pem"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n' > server.ext
        openssl x509 -req -in server.csr -CA "$1.pem" -CAkey ca.key -CAcreateserial -days "$2" -extfile server.ext -out server.pem
        chmod 644 *.key"#;
    let made = Command::new("sh")
        .args(["-ec", script, "sh", name, &days.to_string()])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Creates a folder that the server can read.
fn readable() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let given = Command::new("chmod").arg("755").arg(folder.path()).status();
    assert!(given.unwrap().success());
    folder
}

fn why(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn certificates_are_checked_as_the_address_says() {
    let folder = readable();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let cluster = Cluster::start(&[
        &format!("ssl-cert={}", file("server.pem")),
        &format!("ssl-key={}", file("server.key")),
        "plugin-load-add=auth_ed25519",
    ])
    .unwrap();
    cluster.ask("CREATE DATABASE bareboat").unwrap();
    cluster
        .ask(
            "CREATE USER edward@'%' IDENTIFIED VIA ed25519 USING PASSWORD('s%cret') REQUIRE SSL;
              GRANT ALL ON bareboat.* TO edward@'%'",
        )
        .unwrap();
    let opened = |host: &str, parameters: &str| {
        let url = format!(
            "mysql://edward:s%25cret@{host}:{}/bareboat?{parameters}",
            cluster.port
        );
        Mysql::open(&url).map(drop).map_err(|error| {
            let text = why(&error);
            assert!(!text.contains("s%cret"), "{text}");
            text
        })
    };
    let (ca, other) = (file("ca.pem"), file("other.pem"));
    opened("localhost", &format!("tls=verify-identity&ca={ca}")).unwrap();
    opened(
        "127.0.0.1",
        &format!("tls=verify-identity&tls-name=localhost&ca={ca}"),
    )
    .unwrap();
    opened("127.0.0.1", "tls=skip-verify").unwrap();
    let refusals = [
        (
            "127.0.0.1",
            format!("tls=verify-identity&ca={ca}"),
            "not valid for name",
        ),
        (
            "localhost",
            format!("tls=verify-identity&ca={other}"),
            "invalid peer certificate",
        ),
        (
            "localhost",
            "tls=verify-identity&ca=/nowhere.pem".to_owned(),
            "/nowhere.pem",
        ),
        (
            "localhost",
            format!("tls=verify-identity&ca={ca}&cert=/x.pem"),
            "both or neither",
        ),
        ("localhost", "tls=off".to_owned(), "Access denied"),
    ];
    for (host, parameters, expected) in refusals {
        let refused = opened(host, &parameters).unwrap_err();
        assert!(refused.contains(expected), "{parameters}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_without_a_restart_and_expired_ones_refused() {
    let folder = readable();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let cluster = Cluster::start(&[
        &format!("ssl-cert={}", file("server.pem")),
        &format!("ssl-key={}", file("server.key")),
    ])
    .unwrap();
    cluster.ask("CREATE DATABASE bareboat").unwrap();
    let proxy = Proxy::to(cluster.port);
    let url = |port: u16| {
        format!(
            "mysql://root@localhost:{port}/bareboat?tls=verify-identity&ca={}",
            file("ca.pem")
        )
    };
    let store = open(&url(proxy.port));
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("a")).await.unwrap();
    // Another authority, with another certificate of the server.
    authority(folder.path(), "ca", 2);
    cluster.ask("FLUSH SSL").unwrap();
    proxy.drop_all();
    store.commit(write("b")).await.unwrap();
    assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
    store.close().await;
    authority(folder.path(), "ca", -1);
    cluster.ask("FLUSH SSL").unwrap();
    let refused = why(&Mysql::open(&url(cluster.port)).unwrap_err());
    assert!(refused.to_lowercase().contains("expired"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_changes_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(&[]).unwrap();
    cluster
        .ask(
            "CREATE DATABASE rotated; CREATE USER boat@'127.0.0.1' IDENTIFIED BY 'hunter2';
             GRANT ALL ON rotated.* TO boat@'127.0.0.1'",
        )
        .unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let url = |port: u16| {
        let file = file.display();
        format!("mysql://boat@127.0.0.1:{port}/rotated?password-file={file}")
    };
    let proxy = Proxy::to(cluster.port);
    let store = open(&url(proxy.port));
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("a")).await.unwrap();
    cluster
        .ask("ALTER USER boat@'127.0.0.1' IDENTIFIED BY 'hunter3'")
        .unwrap();
    // New sessions need the new password, which is in the file a moment later.
    proxy.drop_all();
    let writing = tokio::spawn({
        let (store, write) = (store.clone(), write("b"));
        async move { store.commit(write).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = why(&Mysql::open(&url(cluster.port)).unwrap_err());
    assert!(refused.contains("Access denied"), "{refused}");
    assert!(!refused.contains("hunter"), "{refused}");
    std::fs::write(&file, "hunter3\n").unwrap();
    writing.await.unwrap().unwrap();
    assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
    store.close().await;
}
