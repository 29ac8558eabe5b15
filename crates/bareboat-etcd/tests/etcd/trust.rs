//! Tests of TLS with client certificates, and of users with passwords.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bareboat_etcd::Etcd;
use bareboat_rig::proxy::Proxy;
use bareboat_storage::{Backend as _, Write};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::member::{Member, base64};
use super::{object, open};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate for `name` and its key; returns the paths of both files.
fn issue(folder: &Path, ca: &Issuer, file: &str, name: &str) -> (PathBuf, PathBuf) {
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    write(folder, ca, file, params)
}

/// The same with a certificate that has expired.
fn issue_expired(folder: &Path, ca: &Issuer, file: &str, name: &str) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 2);
    write(folder, ca, file, params);
}

fn write(
    folder: &Path,
    ca: &Issuer,
    file: &str,
    mut params: CertificateParams,
) -> (PathBuf, PathBuf) {
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    let paths = ["crt", "key"].map(|end| folder.join(format!("{file}.{end}")));
    std::fs::write(&paths[0], certificate.pem()).unwrap();
    std::fs::write(&paths[1], key.serialize_pem()).unwrap();
    let [certificate, key] = paths;
    (certificate, key)
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_verified_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, other) = (authority(), authority());
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("ca"), ca.pem()).unwrap();
    std::fs::write(path("other"), other.pem()).unwrap();
    let server = issue(folder.path(), &ca, "server", "127.0.0.1");
    let client = issue(folder.path(), &ca, "client", "client");
    let foreign = issue(folder.path(), &other, "foreign", "client");
    let flags = [
        format!("--cert-file={}", server.0.display()),
        format!("--key-file={}", server.1.display()),
        format!("--trusted-ca-file={}", path("ca").display()),
        "--client-cert-auth".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let member = Member::start(&flags).unwrap();
    let url = |host: &str, ca: &str, (certificate, key): &(PathBuf, PathBuf)| {
        format!(
            "etcd://{host}:{}/tls?tls=on&ca={}&cert={}&key={}",
            member.port,
            path(ca).display(),
            certificate.display(),
            key.display()
        )
    };
    let store = open(&url("127.0.0.1", "ca", &client));
    let resource = store.resource("core/configmaps");
    let write = Write::create(&resource, "a", object(1));
    store.commit(write).await.unwrap();
    store.close().await;
    let wrong = [
        (
            url("127.0.0.1", "other", &client),
            "invalid peer certificate",
        ),
        (url("localhost", "ca", &client), "not valid for name"),
        (url("127.0.0.1", "ca", &foreign), ""),
        (url("127.0.0.1", "missing", &client), "missing"),
    ];
    for (url, expected) in wrong {
        let error = Etcd::open(&url).unwrap_err();
        assert!(why(&error).contains(expected), "{}", why(&error));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_have_passwords_and_tokens_are_replaced() {
    let member = Member::start(&[]).unwrap();
    let granted = format!(
        r#"{{"name":"boat","perm":{{"permType":"READWRITE","key":"{}","range_end":"{}"}}}}"#,
        base64(b"/users/"),
        base64(b"/users0")
    );
    for (path, request) in [
        ("auth/user/add", r#"{"name":"root","password":"hunter2"}"#),
        ("auth/role/add", r#"{"name":"root"}"#),
        ("auth/user/grant", r#"{"user":"root","role":"root"}"#),
        // A Bareboat server needs access only to the keys below its prefix.
        ("auth/user/add", r#"{"name":"boat","password":"hunter2"}"#),
        ("auth/role/add", r#"{"name":"boat"}"#),
        ("auth/role/grant", &granted),
        ("auth/user/grant", r#"{"user":"boat","role":"boat"}"#),
        ("auth/enable", "{}"),
    ] {
        member.ask(path, request);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let plain = member.url(member.port, "users");
    let url = format!("{plain}?user=boat&password-file={}", file.display());
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("a")).await.unwrap();
    // etcd keeps tokens in memory only.
    tokio::task::block_in_place(|| {
        member.kill();
        member.run(&[]);
    });
    store.commit(write("b")).await.unwrap();
    store.compact(store.visible()).await.unwrap();
    assert_eq!(store.floor(), store.visible());
    store.close().await;
    let elsewhere = url.replace("/users?", "/elsewhere?");
    let denied = why(&Etcd::open(&elsewhere).unwrap_err());
    assert!(denied.contains("permission denied"), "{denied}");
    assert!(Etcd::open(&plain).is_err(), "without a user");
    std::fs::write(&file, "hunter3").unwrap();
    let error = why(&Etcd::open(&url).unwrap_err());
    assert!(error.contains("authentication failed"), "{error}");
    assert!(!error.contains("hunter"), "{error}");
    std::fs::write(&file, "hunter2").unwrap();
    assert_eq!(Etcd::open(&url).unwrap().mark().unwrap().last, 3);
    // The password changes while a store is open; the file has it a moment later.
    let store = open(&url);
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("c")).await.unwrap();
    let root = r#"{"name":"root","password":"hunter2"}"#;
    let token = member.ask("auth/authenticate", root);
    let (_, token) = token.split_once(r#""token":""#).unwrap();
    let token = token.split('"').next().unwrap();
    let changed = r#"{"name":"boat","password":"hunter4"}"#;
    member.ask_as(token, "auth/user/changepw", changed);
    let writing = tokio::spawn({
        let (store, write) = (store.clone(), write("d"));
        async move { store.commit(write).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    std::fs::write(&file, "hunter4").unwrap();
    assert_eq!(writing.await.unwrap().unwrap().revision, 5);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_without_a_restart_and_expired_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, next) = (authority(), authority());
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("ca"), ca.pem()).unwrap();
    std::fs::write(path("trusted"), ca.pem()).unwrap();
    let server = issue(folder.path(), &ca, "server", "127.0.0.1");
    let client = issue(folder.path(), &ca, "client", "client");
    let flags = [
        format!("--cert-file={}", server.0.display()),
        format!("--key-file={}", server.1.display()),
        format!("--trusted-ca-file={}", path("ca").display()),
        "--client-cert-auth".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let member = Member::start(&flags).unwrap();
    let url = |port: u16| {
        format!(
            "etcd://127.0.0.1:{port}/renewed?tls=on&ca={}&cert={}&key={}",
            path("trusted").display(),
            client.0.display(),
            client.1.display()
        )
    };
    let proxy = Proxy::to(member.port);
    let store = open(&url(proxy.port));
    let resource = store.resource("core/configmaps");
    let write = |key: &str| Write::create(&resource, key.to_owned(), object(1));
    store.commit(write("a")).await.unwrap();
    // The server's certificate comes from another authority, and the client gets another one as well.
    issue(folder.path(), &next, "server", "127.0.0.1");
    issue(folder.path(), &ca, "client", "client");
    std::fs::write(path("trusted"), next.pem()).unwrap();
    proxy.drop_all();
    store.commit(write("b")).await.unwrap();
    assert!(store.freshen(Duration::from_secs(30)).await.unwrap());
    store.close().await;
    issue_expired(folder.path(), &next, "server", "127.0.0.1");
    let refused = why(&Etcd::open(&url(member.port)).unwrap_err());
    assert!(refused.to_lowercase().contains("expired"), "{refused}");
}
