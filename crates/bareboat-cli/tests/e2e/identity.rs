//! Users of real OIDC providers, with kubectl; and files that are read again while the server runs.

use crate::process::{Output, PATIENCE, run};
use crate::server::Home;
use crate::tools;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// A provider of tests/javascript/issuer.mjs, and its client.
struct Issuer {
    url: String,
    ca: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Issuer {
    fn start(dir: &Path) -> Issuer {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let dir = tempfile::tempdir_in(dir).unwrap().keep();
        let (certificate, key) = (dir.join("issuer.crt"), dir.join("issuer.key"));
        let ca = made.cert.pem();
        std::fs::write(&certificate, &ca).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let environment = tools::workspace().join(".cache/javascript");
        let mut child = Command::new("node")
            .arg(environment.join("issuer.mjs"))
            .args([certificate, key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = sync_channel(1024);
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut issuer = Issuer {
            url: String::new(),
            ca,
            input: child.stdin.take().unwrap(),
            child,
            lines,
        };
        let ready = issuer.line(|line| line.starts_with("ready "));
        issuer.url = ready["ready ".len()..].to_owned();
        issuer
    }

    /// Returns the next line that is an answer; the provider also prints other lines.
    fn line(&self, is_answer: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).expect("the issuer answers");
            assert!(!line.starts_with("error"), "{line}");
            if is_answer(&line) {
                return line;
            }
        }
    }

    fn token(&mut self, client: &str) -> String {
        writeln!(self.input, "token {client} 3600").unwrap();
        self.line(|line| line.starts_with("eyJ"))
    }

    fn rotate(&mut self) {
        writeln!(self.input, "rotate").unwrap();
        self.line(|line| line == "rotated");
    }

    /// Returns its section of the configuration.
    fn section(&self, prefix: &str) -> Value {
        json!({
            "issuer": {"url": self.url, "certificateAuthority": self.ca, "audiences": ["kubernetes"]},
            "claimMappings": {
                "username": {"claim": "sub", "prefix": prefix},
                "groups": {"expression": format!("claims.groups.map(g, '{prefix}' + g)")},
            },
            "userValidationRules": [{"expression": "!user.username.startsWith('system:')"}],
        })
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(path: &Path, sections: &[Value]) {
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": sections,
    });
    std::fs::write(path, file.to_string()).unwrap();
}

/// kubectl with a token and nothing else.
struct Kubectl {
    program: PathBuf,
    home: Home,
}

impl Kubectl {
    fn run(&self, token: &str, arguments: &[&str]) -> Output {
        let authority = self.home.data().join("certificates/ca.crt");
        let mut command = Command::new(&self.program);
        command
            .args(["--kubeconfig=/dev/null", &format!("--token={token}")])
            .arg(format!("--server=https://{}", self.home.address()))
            .arg(format!("--certificate-authority={}", authority.display()))
            .args(arguments)
            .env("HOME", self.home.path());
        run(&mut command, "")
    }

    /// Returns the user of a token; `None` if the server refuses the token.
    fn who(&self, token: &str) -> Option<Value> {
        let output = self.run(token, &["auth", "whoami", "-o", "json"]);
        if !output.status.success() {
            assert!(output.stderr.contains("logged in"), "{}", output.all());
            return None;
        }
        let review: Value = serde_json::from_str(&output.stdout).unwrap();
        Some(review["status"]["userInfo"].clone())
    }

    fn until(&self, what: &str, is_so: impl Fn(&Kubectl) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < end, "never: {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn users_of_two_oidc_providers_get_in_while_keys_and_configuration_change() {
    let Some(program) = tools::kubectl() else {
        return;
    };
    if !tools::prepared("javascript", "scripts/javascript.sh") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("authentication.yaml");
    let (mut red, mut blue) = (Issuer::start(dir.path()), Issuer::start(dir.path()));
    configuration(&file, &[red.section("red:"), blue.section("blue:")]);
    let flag = file.display().to_string();
    let home = Home::with(&["--authentication-config", &flag]);
    let _server = home.serve();
    let kubectl = Kubectl { program, home };

    let first = red.token("ann");
    let ann = kubectl.who(&first).unwrap();
    assert_eq!(ann["username"], "red:ann");
    assert_eq!(ann["groups"], json!(["red:crew", "system:authenticated"]));
    assert_eq!(
        kubectl.who(&blue.token("bob")).unwrap()["username"],
        "blue:bob"
    );
    let refused = kubectl.run(&first, &["get", "namespaces"]);
    let said = "User \"red:ann\" cannot list";
    assert!(refused.stderr.contains(said), "{}", refused.all());

    // New keys are fetched when the first token that uses them arrives; removed keys are no longer valid.
    red.rotate();
    let second = red.token("ann");
    assert_eq!(kubectl.who(&second).unwrap()["username"], "red:ann");
    assert_eq!(kubectl.who(&first), None);

    // An invalid configuration changes nothing.
    std::fs::write(
        &file,
        "apiVersion: apiserver.config.k8s.io/v1\nkind: Nonsense\n",
    )
    .unwrap();
    let metrics = |kubectl: &Kubectl| {
        let mut command = Command::new(&kubectl.program);
        let command = command
            .args(["get", "--raw", "/metrics", "--kubeconfig"])
            .arg(kubectl.home.kubeconfig())
            .env("HOME", kubectl.home.path());
        run(command, "").stdout
    };
    let failed =
        "apiserver_authentication_config_controller_automatic_reloads_total{status=\"failure\"} 1";
    kubectl.until("the bad file is noticed", |it| metrics(it).contains(failed));
    assert!(kubectl.who(&second).is_some());

    // One issuer is removed: its tokens become invalid, those of the other stay valid.
    configuration(&file, &[blue.section("green:")]);
    kubectl.until("the new file counts", |it| it.who(&second).is_none());
    assert_eq!(
        kubectl.who(&blue.token("bob")).unwrap()["username"],
        "green:bob"
    );

    // The issuer stops; its keys stay valid.
    let last = blue.token("bob");
    drop(blue);
    assert_eq!(kubectl.who(&last).unwrap()["username"], "green:bob");
}

#[test]
fn a_configuration_that_cannot_be_used_ends_the_start_with_its_mistakes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let issuers = write(
        "authentication.yaml",
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: \
         'http://a.example', audiences: []}\n  claimMappings: {username: {claim: sub}}\n",
    );
    let authorizers = write(
        "authorization.yaml",
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: Node, name: a}\n",
    );
    let nonsense = write("nonsense.pem", "nonsense");
    for (flags, mistakes) in [
        (
            vec!["--authentication-config", &issuers],
            vec![
                "URL scheme must be https",
                "prefix is required",
                "audiences is required",
            ],
        ),
        (
            vec!["--authorization-config", &authorizers],
            vec!["Unsupported value: \"Node\""],
        ),
        (
            vec![
                "--requestheader-client-ca-file",
                &nonsense,
                "--requestheader-allowed-names",
                "a",
            ],
            vec!["the CA of front proxies"],
        ),
        (
            vec!["--requestheader-client-ca-file", &nonsense],
            vec!["--requestheader-allowed-names"],
        ),
        (
            vec!["--authentication-token-webhook-config-file", &nonsense],
            vec!["the kubeconfig", "current context"],
        ),
    ] {
        let home = Home::with(&[]);
        let mut command = crate::server::bareboat(["serve", "--in-memory"]);
        command
            .args(["--bind", &home.address(), "--data-dir"])
            .arg(home.data())
            .args(&flags);
        let output = run(&mut command, "");
        assert!(!output.status.success(), "{flags:?}");
        for mistake in mistakes {
            assert!(
                output.stderr.contains(mistake),
                "{mistake}: {}",
                output.all()
            );
        }
    }
}

#[test]
fn the_authorizers_and_the_token_file_change_while_the_server_runs() {
    let Some(program) = tools::kubectl() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (authorizers, tokens) = (
        dir.path().join("authorization.yaml"),
        dir.path().join("tokens.csv"),
    );
    let decide = |kinds: &[&str]| {
        let list: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"type": kind, "name": kind.to_lowercase()}))
            .collect();
        let file = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": list,
        });
        std::fs::write(&authorizers, file.to_string()).unwrap();
    };
    decide(&["RBAC", "AlwaysAllow"]);
    std::fs::write(&tokens, "of-bob,bob,1\n").unwrap();
    let flags = [
        authorizers.display().to_string(),
        tokens.display().to_string(),
    ];
    let home = Home::with(&[
        "--authorization-config",
        &flags[0],
        "--token-file",
        &flags[1],
    ]);
    let _server = home.serve();
    let kubectl = Kubectl { program, home };
    let list = |it: &Kubectl, token: &str| it.run(token, &["get", "namespaces"]);
    let allowed = list(&kubectl, "of-bob");
    assert!(allowed.status.success(), "{}", allowed.all());
    decide(&["RBAC"]);
    kubectl.until("roles decide alone", |it| {
        list(it, "of-bob")
            .stderr
            .contains("User \"bob\" cannot list")
    });
    std::fs::write(&tokens, "of-bob,carl,1\nof-ann,ann,2\n").unwrap();
    kubectl.until("the new token counts", |it| it.who("of-ann").is_some());
    assert_eq!(kubectl.who("of-bob").unwrap()["username"], "carl");
}

/// The commands of the documentation that make a certificate.
#[test]
fn a_certificate_is_made_as_the_documentation_says() {
    let Some(program) = tools::kubectl() else {
        return;
    };
    let page = std::fs::read_to_string(tools::workspace().join("docs/identity.md")).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap();
    let commands = block.split("```").next().unwrap();
    assert!(commands.contains("openssl req"), "{commands}");
    let home = Home::new();
    let _server = home.serve();
    std::os::unix::fs::symlink(home.data(), home.path().join("bareboat-data")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-e", "-c", commands])
        .current_dir(home.path())
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .env("KUBECONFIG", home.kubeconfig())
        .env("HOME", home.path());
    let output = run(&mut command, "");
    assert!(output.status.success(), "{}", output.all());
    let says = |word: &str| output.stdout.contains(word);
    assert!(
        says("ann") && says("dev") && says("X509SHA256="),
        "{}",
        output.all()
    );
}
