//! Secrets that a client sends in every way there is, and a search for them in everything the server writes: its log at
//! the highest level, audit events with bodies, events, metrics, answers to others, the files of its store and a backup.

use crate::kubectl::Kubectl;
use crate::process::{eventually, run};
use crate::server::bareboat;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::path::Path;

/// A secret, and the forms in which it may show up.
struct Planted {
    what: &'static str,
    text: String,
}

impl Planted {
    fn forms(&self) -> [String; 3] {
        let text = self.text.as_bytes();
        [
            self.text.clone(),
            STANDARD.encode(text).trim_end_matches('=').to_owned(),
            URL_SAFE_NO_PAD.encode(text),
        ]
    }

    /// Panics if the secret is there.
    fn is_not_in(&self, place: &str, text: &str) {
        for form in self.forms() {
            assert!(!text.contains(&*form), "{} is in {place}", self.what);
        }
    }
}

/// The secrets of a run.
#[derive(Default)]
struct Garden(Vec<Planted>);

impl Garden {
    fn plant(&mut self, what: &'static str) -> String {
        let text = format!("planted-{:02}-{}", self.0.len(), uuid(self.0.len()));
        self.add(what, &text);
        text
    }

    fn add(&mut self, what: &'static str, text: &str) {
        let text = text.trim().to_owned();
        assert!(
            text.len() > 12,
            "{what}: {text:?} is too short to search for"
        );
        self.0.push(Planted { what, text });
    }
}

/// A text that differs in every run.
fn uuid(number: usize) -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!("{:x}{number:x}", since.unwrap().as_nanos())
}

fn secret(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{password: {value}}}\n"
    )
}

/// Runs kubectl with other credentials than the administrator's. Whether they are accepted does not matter; returns the answer.
fn as_other(kubectl: &Kubectl, credentials: &str) -> String {
    let home = &kubectl.home;
    let line = format!(
        "--kubeconfig=/dev/null --server=https://{} --certificate-authority={} {credentials} get secrets",
        home.address(),
        home.data().join("certificates/ca.crt").display()
    );
    run(&mut kubectl.command(&line), "").all()
}

/// Sends secrets in every way there is. Returns the answers to others than the administrator.
fn sow(kubectl: &Kubectl, garden: &mut Garden) -> String {
    let mut answers = String::new();
    let any = |line: &str, input: &str| {
        run(&mut kubectl.command(line), input);
    };
    for (what, line) in [
        ("a new secret", "create -f -"),
        ("the same secret again, which is refused", "create -f -"),
        (
            "an applied secret, which is in its own annotation",
            "apply -f -",
        ),
        (
            "a secret applied by the server",
            "apply --server-side --force-conflicts -f -",
        ),
        ("a replaced secret", "replace -f -"),
        (
            "a dry run",
            "apply --server-side --force-conflicts --dry-run=server -f -",
        ),
    ] {
        let text = garden.plant(what);
        any(line, &secret("vault", &text));
    }
    let text = garden.plant("a merge patch");
    any(
        &format!("patch secret vault --type=merge -p '{{\"stringData\":{{\"a\":\"{text}\"}}}}'"),
        "",
    );
    let text = garden.plant("a JSON patch");
    let encoded = STANDARD.encode(&text);
    any(
        &format!(
            "patch secret vault --type=json -p '[{{\"op\":\"add\",\"path\":\"/data/b\",\"value\":\"{encoded}\"}}]'"
        ),
        "",
    );
    let text = garden.plant("a patch that is refused");
    any(
        &format!(
            "patch secret vault --type=merge -p '{{\"data\":{{\"a\":{{\"deep\":\"{text}\"}}}}}}'"
        ),
        "",
    );
    let text = garden.plant("a value that is not base64");
    any(
        "create --raw /api/v1/namespaces/default/secrets -f -",
        &format!("{{\"metadata\":{{\"name\":\"x\"}},\"data\":{{\"a\":\"{text}!\"}}}}"),
    );
    let text = garden.plant("a body that is cut short");
    any(
        "create --raw /api/v1/namespaces/default/secrets -f -",
        &format!("{{\"stringData\":{{\"a\":\"{text}\""),
    );
    let text = garden.plant("a secret of a namespace that does not exist");
    any("create -n nowhere -f -", &secret("lost", &text));
    let text = garden.plant("a password of a registry");
    any(
        &format!(
            "create secret docker-registry pull --docker-username=u --docker-password={text} --docker-server=r.example"
        ),
        "",
    );
    let text = garden.plant("a secret that may not change");
    any(
        "create -f -",
        &format!("{}immutable: true\n", secret("fixed", &text)),
    );
    let text = garden.plant("a refused change of it");
    any("replace -f -", &secret("fixed", &text));
    let text = garden.plant("a secret of another user, who may not write");
    any("create --as=ann -f -", &secret("anns", &text));
    let text = garden.plant("a bootstrap token");
    any(
        "create -f -",
        &format!(
            "apiVersion: v1\nkind: Secret\ntype: bootstrap.kubernetes.io/token\nmetadata: {{name: bootstrap-token-abcdef, namespace: kube-system}}\n\
         stringData: {{token-id: abcdef, token-secret: {text}}}\n"
        ),
    );
    let text = garden.plant("a token under review");
    any(
        "create -o yaml -f -",
        &format!(
            "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {{token: {text}}}\n"
        ),
    );
    kubectl.gives("create serviceaccount robot");
    let token = kubectl.gives("create token robot");
    garden.add("an issued token", &token);
    // Its parts are secrets, too: with the signature the rest can be guessed.
    garden.add(
        "the signature of a token",
        token.trim().rsplit('.').next().unwrap(),
    );
    any(
        "create -f -",
        &format!(
            "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {{token: {}}}\n",
            token.trim()
        ),
    );
    answers += &as_other(kubectl, &format!("--token={}", token.trim()));
    any(
        "create -f -",
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\n\
         metadata: {name: held, annotations: {kubernetes.io/service-account.name: robot}}\n",
    );
    let held = eventually("the server fills the secret", || {
        let encoded = kubectl.gives("get secret held -o 'jsonpath={.data.token}'");
        let bytes = STANDARD.decode(encoded.trim()).unwrap();
        (!bytes.is_empty()).then(|| String::from_utf8(bytes).unwrap())
    });
    garden.add("a token that a secret holds", &held);
    answers += &as_other(kubectl, &format!("--token={held}"));
    let text = garden.plant("an unknown token");
    answers += &as_other(kubectl, &format!("--token={text}"));
    let text = garden.plant("a password of a user");
    answers += &as_other(kubectl, &format!("--username=ann --password={text}"));
    answers
}

#[test]
fn planted_secrets_are_nowhere() {
    let files = tempfile::tempdir().unwrap();
    let mut garden = Garden::default();
    let write = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let token = garden.plant("a token of the token file");
    let tokens = write("tokens.csv", &format!("{token},tom,1,\"system:masters\"\n"));
    let key = STANDARD.encode([7; 32]);
    garden.add("the key of encryption", &key);
    let encryption = write(
        "encryption.yaml",
        &format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  \
         providers:\n  - secretbox: {{keys: [{{name: one, secret: {key}}}]}}\n"
        ),
    );
    let policy = write(
        "policy.yaml",
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n",
    );
    let log = files.path().join("audit.log");
    let shown = log.display().to_string();
    let Some(kubectl) = Kubectl::start_with(&[
        "--log=trace",
        "--enable-bootstrap-token-auth",
        "--token-file",
        &tokens,
        "--encryption-provider-config",
        &encryption,
        "--audit-policy-file",
        &policy,
        "--audit-log-path",
        &shown,
    ]) else {
        return;
    };
    let mut answers = as_other(&kubectl, &format!("--token={token}"));
    answers += &sow(&kubectl, &mut garden);
    answers += &as_other(&kubectl, &format!("--token={token}"));
    assert!(
        answers.contains("vault") && answers.contains("orbidden"),
        "{answers}"
    );
    assert!(garden.0.len() >= 20, "{} secrets", garden.0.len());
    let metrics = kubectl.gives("get --raw /metrics");
    let events = kubectl.gives("get events -A -o yaml");
    let dumps = kubectl
        .gives("get --raw /debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1");
    // The administrator can read what was stored, so it was not lost on the way.
    let stored = kubectl.gives("get secret vault -o 'jsonpath={.data.b}'");
    assert!(
        String::from_utf8(STANDARD.decode(stored).unwrap())
            .unwrap()
            .starts_with("planted-")
    );
    let data = kubectl.home.data();
    // Secrets are ASCII, which the conversion keeps. Searching text is much faster than searching bytes.
    let read = |path: &Path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut places = vec![
        ("state.db-wal", read(&data.join("state.db-wal"))),
        ("metrics", metrics),
        ("events", events),
        ("dumps", dumps),
        ("answers to others", answers),
    ];
    let Kubectl { home, server, .. } = kubectl;
    let (status, text) = server.stop();
    assert!(status.success());
    assert!(
        text.lines().count() > 100,
        "at trace there is a lot to read"
    );
    places.push(("the log", text));
    places.push(("state.db", read(&home.data().join("state.db"))));
    let backup = files.path().join("whole.backup");
    let mut command = bareboat(["backup", "--data-dir"]);
    let output = run(command.arg(home.data()).arg(&backup), "");
    assert!(output.status.success(), "{}", output.all());
    let mut unpack = std::process::Command::new("gzip");
    let unpacked = run(unpack.arg("-dc").arg(&backup), "").stdout;
    assert!(
        unpacked.contains("core/secrets"),
        "the backup has the secrets"
    );
    places.push(("a backup", unpacked));
    let audited = read(&log);
    assert!(audited.contains("<redacted>"));
    places.push(("the audit log", audited));
    for (place, text) in &places {
        for planted in &garden.0 {
            planted.is_not_in(place, text);
        }
    }
    for name in [
        "ca",
        "server",
        "admin",
        "service-accounts",
        "front-proxy-ca",
        "front-proxy-client",
    ] {
        let path = home.data().join(format!("certificates/{name}.key"));
        let pem = std::fs::read_to_string(path).unwrap();
        for line in pem.lines().filter(|line| !line.starts_with("-----")) {
            for (place, text) in &places {
                assert!(!text.contains(line), "the key of {name} is in {place}");
            }
        }
    }
}
