//! Tests of encrypted connections and of login methods.

use std::path::Path;
use std::process::Command;

use bareboat_sql::Mysql;

use super::cluster::Cluster;

/// Creates two authorities, and a certificate for `localhost` that the second authority has signed.
fn certificates(folder: &Path) {
    let script = r#"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
            -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out "$1.pem"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n' > server.ext
        openssl x509 -req -in server.csr -CA "$1.pem" -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
        chmod 644 *.key"#;
    for authority in ["other", "ca"] {
        let made = Command::new("sh")
            .args(["-ec", script, "sh", authority])
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }
}

#[test]
fn certificates_are_checked_as_the_address_says() {
    let folder = tempfile::tempdir().unwrap();
    let given = Command::new("chmod").arg("755").arg(folder.path()).status();
    assert!(given.unwrap().success());
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
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
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
