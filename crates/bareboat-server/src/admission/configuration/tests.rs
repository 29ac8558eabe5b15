//! Files with settings of admission plug-ins, good and bad.

use super::*;

fn file(directory: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).expect("a file");
    path
}

#[test]
fn settings_are_in_the_file_or_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    file(
        &directory,
        "hooks.yaml",
        "{kind: WebhookAdmissionConfiguration}",
    );
    let path = file(
        &directory,
        "all.yaml",
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
         - {name: ValidatingAdmissionWebhook, path: hooks.yaml}\n\
         - name: PodSecurity\n  configuration: {kind: PodSecurityConfiguration}\n- {name: Empty}\n",
    );
    let read = AdmissionConfiguration::read(path).expect("it is valid");
    let kind = |name: &str| {
        let (settings, _) = read.plugin(name)?;
        settings.get("kind").and_then(Value::as_str)
    };
    assert_eq!(
        kind("ValidatingAdmissionWebhook"),
        Some("WebhookAdmissionConfiguration")
    );
    assert_eq!(kind("PodSecurity"), Some("PodSecurityConfiguration"));
    assert!(read.plugin("Empty").is_none());
    assert_eq!(read.names().count(), 3);
}

#[test]
fn mistakes_are_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
    for (text, why) in [
        ("kind: Pod", "must be of kind AdmissionConfiguration"),
        (&*format!("{head}plugin: []"), "unknown field \"plugin\""),
        (
            &*format!("{head}plugins: [{{}}]"),
            "plugins[0].name: Required value",
        ),
        (
            &*format!("{head}plugins: [{{name: A}}, {{name: A}}]"),
            "Duplicate value",
        ),
        (
            &*format!("{head}plugins: [{{name: A, path: missing}}]"),
            "No such file",
        ),
    ] {
        let path = file(&directory, "all.yaml", text);
        let error = AdmissionConfiguration::read(path).expect_err(text);
        assert!(error.to_string().contains(why), "{error}");
    }
}
