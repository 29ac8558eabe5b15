//! Tests of TLS, of certificates that are renewed, and of passwords that change, while a store is open.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bareboat_rig::proxy::Proxy;
use bareboat_sql::Postgres;
use bareboat_storage::Write;

use super::cluster::Cluster;
use super::{object, open};

/// Makes the authority `name`.
fn authority(folder: &Path, name: &str) {
    let script = r#"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -addext basicConstraints=critical,CA:TRUE -keyout "$1.key" -out "$1.pem""#;
    shell(folder, script, &[name]);
}

/// Makes the certificate and key `name` for `subject`, valid for `days`; negative: expired.
fn issue(folder: &Path, authority: &str, name: &str, subject: &str, days: i32) {
    let script = r#"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$3" -keyout "$2.key" -out "$2.csr"
        printf 'subjectAltName=DNS:%s\n' "$3" > "$2.ext"
        openssl x509 -req -in "$2.csr" -CA "$1.pem" -CAkey "$1.key" -CAcreateserial -days "$4" -extfile "$2.ext" -out "$2.pem"
        chmod 600 "$2.key""#;
    shell(
        folder,
        script,
        &[authority, name, subject, &days.to_string()],
    );
}

fn shell(folder: &Path, script: &str, arguments: &[&str]) {
    let mut command = Command::new("sh");
    command.args(["-ec", script, "sh"]).args(arguments);
    let done = command.current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{done:?}");
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

/// A server with TLS, and a folder of certificates that it can read.
fn with_tls() -> (tempfile::TempDir, Cluster) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    authority(path, "ca");
    authority(path, "other");
    issue(path, "ca", "server", "localhost", 2);
    issue(path, "ca", "client", "postgres", 2);
    issue(path, "other", "stranger", "postgres", 2);
    let cluster = Cluster::start(&[]).unwrap();
    let data = cluster.data();
    for (from, to) in [
        ("server.pem", "server.crt"),
        ("server.key", "server.key"),
        ("ca.pem", "root.crt"),
    ] {
        give(&path.join(from), &data.join(to));
    }
    cluster.ask("ALTER SYSTEM SET ssl TO on").unwrap();
    cluster
        .ask("ALTER SYSTEM SET ssl_ca_file TO 'root.crt'")
        .unwrap();
    // Only encrypted connections with a client's certificate, but for the administrator of this test.
    let rules = "local all all trust\nhost all boat all scram-sha-256\nhostnossl all postgres 127.0.0.1/32 trust\nhostssl all postgres all trust clientcert=verify-ca\n";
    std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
    cluster.ask("SELECT pg_reload_conf()").unwrap();
    (folder, cluster)
}

/// Copies a file to a place where the server reads it.
fn give(from: &Path, to: &Path) {
    let script = r#"cp "$1" "$2"; chown --reference="$(dirname "$2")" "$2"; chmod 600 "$2""#;
    let paths = [from, to].map(|path| path.display().to_string());
    shell(Path::new("/"), script, &[&paths[0], &paths[1]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_checked_and_renewed() {
    let (folder, cluster) = with_tls();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let url = |host: &str, port: u16, ca: &str, client: &str| {
        format!(
            "postgres://postgres@{host}:{port}/postgres?schema=tls&sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}",
            file(ca),
            file(&format!("{client}.pem")),
            file(&format!("{client}.key"))
        )
    };
    for (host, ca, client, expected) in [
        ("127.0.0.1", "ca.pem", "client", "not valid for name"),
        (
            "localhost",
            "other.pem",
            "client",
            "invalid peer certificate",
        ),
        ("localhost", "nowhere.pem", "client", "nowhere.pem"),
        ("localhost", "ca.pem", "stranger", ""),
    ] {
        let refused = Postgres::open(&url(host, cluster.port, ca, client)).unwrap_err();
        let refused = why(&refused);
        assert!(refused.contains(expected), "{ca} {client}: {refused}");
    }
    // The certificate of the client is replaced, and later that of the authority, without a restart.
    let proxy = Proxy::to(cluster.port);
    let store = open(&url("localhost", proxy.port, "ca.pem", "client"));
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("a")).await.unwrap();
    let path = folder.path();
    authority(path, "next");
    issue(path, "next", "server", "localhost", 2);
    issue(path, "next", "client", "postgres", 2);
    give(&path.join("server.pem"), &cluster.data().join("server.crt"));
    give(&path.join("server.key"), &cluster.data().join("server.key"));
    give(&path.join("next.pem"), &cluster.data().join("root.crt"));
    std::fs::copy(path.join("next.pem"), path.join("ca.pem")).unwrap();
    cluster.ask("SELECT pg_reload_conf()").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.drop_all();
    store.commit(write("b")).await.unwrap();
    assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
    store.close().await;
    // An expired certificate is named as such.
    issue(path, "next", "old", "localhost", -1);
    give(&path.join("old.pem"), &cluster.data().join("server.crt"));
    give(&path.join("old.key"), &cluster.data().join("server.key"));
    cluster.ask("SELECT pg_reload_conf()").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let refused = Postgres::open(&url("localhost", cluster.port, "ca.pem", "client")).unwrap_err();
    let refused = why(&refused);
    assert!(refused.to_lowercase().contains("expired"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_changes_without_a_restart() {
    let (folder, cluster) = with_tls();
    cluster
        .ask("CREATE ROLE boat LOGIN PASSWORD 'hunter2'; GRANT CREATE ON DATABASE postgres TO boat")
        .unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let url = |port: u16| {
        format!(
            "postgres://boat@127.0.0.1:{port}/postgres?schema=rotated&password-file={}",
            file.display()
        )
    };
    let proxy = Proxy::to(cluster.port);
    let store = open(&url(proxy.port));
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("a")).await.unwrap();
    cluster.ask("ALTER ROLE boat PASSWORD 'hunter3'").unwrap();
    // Open sessions go on. New ones need the new password, which is in the file a moment later.
    proxy.drop_all();
    let writing = tokio::spawn({
        let (store, write) = (store.clone(), write("b"));
        async move { store.commit(write).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = why(&Postgres::open(&url(cluster.port)).unwrap_err());
    assert!(
        refused.contains("password authentication failed"),
        "{refused}"
    );
    assert!(!refused.contains("hunter"), "{refused}");
    std::fs::write(&file, "hunter3\n").unwrap();
    writing.await.unwrap().unwrap();
    assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
    store.close().await;
}
