//! Encryption at rest: the content of a server's files, and the configurations it refuses.

use crate::process::{Output, PATIENCE, run};
use crate::server::{Home, Running, bareboat};
use crate::tools;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server whose secrets are encrypted.
struct Vault {
    home: Home,
    config: PathBuf,
    _dir: tempfile::TempDir,
}

/// A provider with one key.
fn key(kind: &str, name: &str, byte: u8) -> String {
    let secret = STANDARD.encode([byte; 32]);
    format!("{kind}: {{keys: [{{name: {name}, secret: {secret}}}]}}")
}

const IDENTITY: &str = "identity: {}";

impl Vault {
    fn new(providers: &[&str]) -> Vault {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("encryption.yaml");
        let shown = config.display().to_string();
        let vault = Vault {
            home: Home::with(&["--encryption-provider-config", &shown, "--log", "info"]),
            config,
            _dir: dir,
        };
        vault.configure(providers);
        vault
    }

    fn configure(&self, providers: &[&str]) {
        let mut text =
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
                        - resources: [secrets]\n  providers:\n"
                .to_owned();
        for provider in providers {
            text.push_str(&format!("  - {provider}\n"));
        }
        // Replaced atomically, as operators should do.
        let new = self.config.with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &self.config).unwrap();
    }

    async fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.home.client().await, "default")
    }

    async fn plant(&self, name: &str) {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        let planted = ByteString(planted(name).into_bytes());
        secret.data = Some([("p".to_owned(), planted)].into());
        let secrets = self.secrets().await;
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }

    async fn holds(&self, name: &str) {
        let secret = self.secrets().await.get(name).await.unwrap();
        assert_eq!(secret.data.unwrap()["p"].0, planted(name).into_bytes());
    }

    /// Returns whether a text is in one of the files of the store.
    fn has(&self, text: &[u8]) -> bool {
        let files = std::fs::read_dir(self.home.data()).unwrap();
        let stores = files.map(|file| file.unwrap().path()).filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("state.db")
        });
        stores.into_iter().any(|path| contains(&path, text))
    }

    fn is_plain(&self, name: &str) -> bool {
        self.has(STANDARD.encode(planted(name)).as_bytes())
    }

    /// Makes the running server rewrite its data.
    fn migrate_running(&self) -> Output {
        let mut command = bareboat(["migrate", "--encryption", "--kubeconfig"]);
        run(command.arg(self.home.kubeconfig()), "")
    }

    /// Writes secrets until one of them has a prefix.
    async fn plant_until(&self, name: &str, prefix: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        let mut count = 0;
        while !self.has(prefix) {
            assert!(Instant::now() < deadline, "the new key is not used");
            self.plant(&format!("{name}-{count}")).await;
            count += 1;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn migrate(&self) -> Output {
        let mut command = bareboat(["migrate", "--encryption-provider-config"]);
        command
            .arg(&self.config)
            .arg("--data-dir")
            .arg(self.home.data());
        run(&mut command, "")
    }

    /// Starts a server that must refuse to start; returns its output.
    fn refuses(&self) -> String {
        let mut command = bareboat(["serve", "--bind", &self.home.address(), "--data-dir"]);
        command
            .arg(self.home.data())
            .arg("--encryption-provider-config")
            .arg(&self.config);
        let output = run(&mut command, "");
        assert_eq!(output.status.code(), Some(1), "{}", output.all());
        output.stderr
    }
}

fn planted(name: &str) -> String {
    format!("planted-in-{name}-1f0b7c93")
}

fn contains(path: &Path, text: &[u8]) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text)
}

fn stop(server: Running) {
    let (status, stderr) = server.stop();
    assert!(status.success(), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_nowhere_in_the_files_after_rotation() {
    let (old, new) = (key("aesgcm", "old", 1), key("secretbox", "new", 2));
    let vault = Vault::new(&[IDENTITY]);
    let server = vault.home.serve();
    vault.plant("before").await;
    assert!(vault.is_plain("before"), "the search finds what is there");
    stop(server);
    // New writes are encrypted; existing data is not yet.
    vault.configure(&[&old, IDENTITY]);
    let server = vault.home.serve();
    vault.plant("first").await;
    vault.holds("before").await;
    assert!(!vault.is_plain("first") && vault.is_plain("before"));
    stop(server);
    let done = vault.migrate();
    assert!(done.stdout.contains("rewritten"), "{}", done.all());
    assert!(!vault.is_plain("before") && !vault.is_plain("first"));
    // Another key, while the server runs.
    vault.configure(&[&old]);
    let server = vault.home.serve();
    vault.configure(&[&new, &old]);
    vault
        .plant_until("second", b"bareboat:enc:secretbox:v1:new:")
        .await;
    let refused = vault.migrate();
    assert!(
        refused.stderr.contains("stop the server first"),
        "{}",
        refused.all()
    );
    stop(server);
    assert!(vault.has(b"bareboat:enc:aesgcm:v1:old:"));
    let done = vault.migrate();
    assert!(done.status.success(), "{}", done.all());
    assert!(
        !vault.has(b"bareboat:enc:aesgcm:v1:old:"),
        "freed pages hold nothing"
    );
    vault.configure(&[&new]);
    let server = vault.home.serve();
    for name in ["before", "first", "second-0"] {
        vault.holds(name).await;
    }
    // A backup is a copy of the file.
    let backup = vault.home.path().join("backup.db");
    let file = rusqlite::Connection::open(vault.home.data().join("state.db")).unwrap();
    file.execute_batch(&format!("VACUUM INTO '{}'", backup.display()))
        .unwrap();
    assert!(contains(&backup, b"bareboat:enc:secretbox:v1:new:"));
    let encoded = STANDARD.encode(planted("first"));
    assert!(!contains(&backup, encoded.as_bytes()));
    stop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_ends_the_start_with_words_and_changes_nothing() {
    let vault = Vault::new(&[&key("aesgcm", "a", 1)]);
    let server = vault.home.serve();
    vault.plant("x").await;
    stop(server);
    let file = vault.home.data().join("state.db");
    let before = std::fs::read(&file).unwrap();
    for (providers, words) in [
        (
            vec![key("aesgcm", "a", 2)],
            "does not decrypt with the aesgcm key \"a\"",
        ),
        (
            vec![key("aesgcm", "b", 1)],
            "the aesgcm key \"a\", which is not configured",
        ),
        (
            vec![key("aescbc", "a", 1)],
            "put aesgcm, secretbox or kms first",
        ),
        (vec!["aesgcm: {keys: []}".to_owned()], "at least one item"),
    ] {
        let providers: Vec<&str> = providers.iter().map(String::as_str).collect();
        vault.configure(&providers);
        let stderr = vault.refuses();
        assert!(stderr.contains(words), "{words}: {stderr}");
        assert!(std::fs::read(&file).unwrap() == before, "{words}");
    }
    // Without any configuration, too.
    let mut command = bareboat(["serve", "--bind", &vault.home.address(), "--data-dir"]);
    let plain = run(command.arg(vault.home.data()), "");
    assert!(
        plain.stderr.contains("the aesgcm key \"a\""),
        "{}",
        plain.all()
    );
    vault.configure(&[&key("aesgcm", "a", 1)]);
    let _server = vault.home.serve();
    vault.holds("x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_ciphertexts_are_refused() {
    let vault = Vault::new(&[&key("aesgcm", "a", 1)]);
    let server = vault.home.serve();
    vault.plant("x").await;
    vault.plant("y").await;
    stop(server);
    // The checksums are mended as well: their lower half is that of the value.
    let file = rusqlite::Connection::open(vault.home.data().join("state.db")).unwrap();
    let read = |key: &str| -> (i64, Vec<u8>, i64) {
        let query = "SELECT rev, value, sum FROM log WHERE key = ?1";
        let row = file.query_row(query, [key], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        });
        row.unwrap()
    };
    let (x, y) = (read("default/x"), read("default/y"));
    let low = i64::from(u32::MAX);
    for (at, from) in [(&x, &y), (&y, &x)] {
        let sum = at.2 & !low | from.2 & low;
        let update = "UPDATE log SET value = ?2, sum = ?3 WHERE rev = ?1";
        file.execute(update, (at.0, &from.1, sum)).unwrap();
    }
    drop(file);
    let stderr = vault.refuses();
    assert!(stderr.contains("default/x) cannot be read"), "{stderr}");
    assert!(stderr.contains("was changed or moved"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_replaced_while_the_server_runs() {
    let (old, new) = (key("aesgcm", "old", 1), key("aesgcm", "new", 2));
    let vault = Vault::new(&[&old, IDENTITY]);
    let server = vault.home.serve();
    vault.plant("first").await;
    let version = vault.secrets().await.get("first").await.unwrap();
    vault.configure(&[&new, &old]);
    vault
        .plant_until("second", b"bareboat:enc:aesgcm:v1:new:")
        .await;
    let done = vault.migrate_running();
    assert!(done.stdout.contains("rewritten"), "{}", done.all());
    assert!(
        !vault.has(b"bareboat:enc:aesgcm:v1:old:"),
        "freed pages hold nothing"
    );
    vault.holds("first").await;
    let same = vault.secrets().await.get("first").await.unwrap();
    assert_eq!(
        same.metadata.resource_version,
        version.metadata.resource_version
    );
    // The old key may go now, and is not missed at the next start.
    vault.configure(&[&new]);
    vault.plant("third").await;
    stop(server);
    let _server = vault.home.serve();
    for name in ["first", "second-0", "third"] {
        vault.holds(name).await;
    }
}

/// A KMS plug-in built on the library of real ones; it ends with the test.
struct Plugin {
    child: Child,
    key_id: PathBuf,
    socket: PathBuf,
    program: PathBuf,
}

impl Plugin {
    fn start(dir: &Path) -> Option<Plugin> {
        let program = tools::peer("kms-plugin")?;
        let (key_id, socket) = (dir.join("key-id"), dir.join("kms.sock"));
        std::fs::write(&key_id, "one").unwrap();
        let child = Plugin::run(&program, &key_id, &socket);
        Some(Plugin {
            child,
            key_id,
            socket,
            program,
        })
    }

    fn run(program: &Path, key_id: &Path, socket: &Path) -> Child {
        Command::new(program)
            .arg("--socket")
            .arg(socket)
            .arg("--key-id-file")
            .arg(key_id)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn provider(&self) -> String {
        format!(
            "kms: {{apiVersion: v2, name: vault, endpoint: 'unix://{}', timeout: 30s}}",
            self.socket.display()
        )
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
    }

    fn again(&mut self) {
        self.child = Plugin::run(&self.program, &self.key_id, &self.socket);
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kms_plug_in_protects_secrets_and_its_key_can_be_rotated() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut plugin) = Plugin::start(dir.path()) else {
        return;
    };
    let vault = Vault::new(&[&plugin.provider()]);
    let server = vault.home.serve();
    vault.plant("x").await;
    assert!(vault.has(b"k8s:enc:kms:v2:vault:") && !vault.is_plain("x"));
    let ready = vault.home.client().await;
    let request = http::Request::get("/readyz/kms-providers")
        .body(Vec::new())
        .unwrap();
    assert_eq!(ready.request_text(request).await.unwrap(), "ok");
    stop(server);
    // After a restart the seed comes from the plug-in.
    std::fs::write(&plugin.key_id, "two").unwrap();
    let server = vault.home.serve();
    vault.holds("x").await;
    vault.plant("y").await;
    stop(server);
    let done = vault.migrate();
    assert!(done.stdout.contains(" 1 rewritten"), "{}", done.all());
    let again = vault.migrate();
    assert!(again.stdout.contains(" 0 rewritten"), "{}", again.all());
    plugin.stop();
    let stderr = vault.refuses();
    assert!(
        stderr.contains("the KMS plug-in vault does not work"),
        "{stderr}"
    );
    plugin.again();
    let _server = vault.home.serve();
    vault.holds("x").await;
    vault.holds("y").await;
}
