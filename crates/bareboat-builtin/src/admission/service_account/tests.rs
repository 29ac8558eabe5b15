//! Unit tests of the plug-in ServiceAccount: token volumes, secrets and mirror pods.

use super::*;
use bareboat_api::value;

fn object(value: Value) -> Object {
    Object::try_from(value).expect("an object")
}

fn pod(spec: Value) -> Object {
    object(value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}))
}

#[test]
fn the_token_volume_is_mounted_unless_the_path_is_used() {
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mut pod = pod(value!({
        "initContainers": [{"name": "i"}],
        "containers": [{"name": "c"}, {"name": "own", "volumeMounts": [{"name": "v", "mountPath": path}]}],
    }));
    token_volume::add(&mut pod);
    let volume = &pod.value().list(&["spec", "volumes"])[0];
    let name = volume.text(&["name"]);
    assert!(
        name.starts_with("kube-api-access-") && name.len() == 21,
        "{name}"
    );
    assert_eq!(volume.list(&["projected", "sources"]).len(), 3);
    assert_eq!(volume.int(&["projected", "defaultMode"]), Some(0o644));
    let mounted = |list: &str, index: usize| {
        let container = &pod.value().list(&["spec", list])[index];
        let mounts = container.list(&["volumeMounts"]);
        mounts
            .iter()
            .map(|mount| mount.text(&["name"]).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(mounted("initContainers", 0), [name]);
    assert_eq!(mounted("containers", 0), [name]);
    assert_eq!(mounted("containers", 1), ["v"]);
}

#[test]
fn an_existing_volume_is_used() {
    let mut pod = pod(value!({
        "containers": [{"name": "c"}],
        "volumes": [{"name": "kube-api-access-abcde", "emptyDir": {}}],
    }));
    token_volume::add(&mut pod);
    assert_eq!(pod.value().list(&["spec", "volumes"]).len(), 1);
    let container = &pod.value().list(&["spec", "containers"])[0];
    let mounts = container.list(&["volumeMounts"]);
    assert_eq!(mounts[0].text(&["name"]), "kube-api-access-abcde");
}

#[test]
fn the_pod_decides_about_its_token_before_the_account() {
    let cases = [
        (None, None, true),
        (None, Some(false), false),
        (Some(true), Some(false), true),
        (Some(false), Some(true), false),
    ];
    for (of_pod, of_account, wanted) in cases {
        let mut pod = pod(value!({"containers": []}));
        let mut account = object(value!({"metadata": {"name": "a"}}));
        let key = "automountServiceAccountToken";
        if let Some(flag) = of_pod {
            pod.map_mut()
                .object_mut("spec")
                .insert(key, Value::Bool(flag));
        }
        if let Some(flag) = of_account {
            account.map_mut().insert(key, Value::Bool(flag));
        }
        assert_eq!(
            wants_token(&pod, &account),
            wanted,
            "{of_pod:?} {of_account:?}"
        );
    }
}

#[test]
fn an_account_may_limit_the_secrets_of_its_pods() {
    let mut account = object(value!({
        "metadata": {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "known"}],
        "imagePullSecrets": [{"name": "pull"}],
    }));
    let env = |name: &str| value!({"name": "E", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}});
    let good = pod(value!({
        "volumes": [{"name": "v", "secret": {"secretName": "known"}}],
        "containers": [{"name": "c", "env": [(env("known"))]}],
        "imagePullSecrets": [{"name": "pull"}],
    }));
    assert_eq!(secrets::check(&good, &account), Ok(()));
    let tail = "is not allowed because service account a does not reference that secret";
    let cases = [
        (
            value!({"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}),
            format!("volume with secret.secretName=\"x\" {tail}"),
        ),
        (
            value!({"containers": [{"name": "c", "env": [(env("x"))]}]}),
            format!("container c with envVar E referencing secret.secretName=\"x\" {tail}"),
        ),
        (
            value!({"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]}),
            format!("init container i with envFrom referencing secret.secretName=\"x\" {tail}"),
        ),
        (
            value!({"imagePullSecrets": [{"name": "known"}]}),
            "imagePullSecrets[0].name=\"known\" is not allowed because service account a does not reference that imagePullSecret".to_owned(),
        ),
    ];
    for (spec, message) in &cases {
        assert_eq!(
            secrets::check(&pod(spec.clone()), &account),
            Err(message.clone())
        );
    }
    let debugged = pod(value!({"ephemeralContainers": [{"name": "e", "env": [(env("x"))]}]}));
    assert_eq!(
        secrets::check_ephemeral(&debugged, &account),
        Err(format!(
            "ephemeral container e with envVar E referencing secret.secretName=\"x\" {tail}"
        ))
    );
    account.remove_meta("annotations");
    for (spec, _) in cases {
        assert_eq!(secrets::check(&pod(spec), &account), Ok(()));
    }
}

#[test]
fn a_mirror_pod_uses_no_account_and_no_secrets() {
    let check = |spec: Value| secrets::check_mirror(&pod(spec)).err().unwrap_or_default();
    assert_eq!(check(value!({"containers": [{"name": "c"}]})), "");
    assert_eq!(
        check(value!({"serviceAccountName": "a"})),
        "a mirror pod may not reference service accounts"
    );
    let secret = "a mirror pod may not reference secrets";
    assert_eq!(check(value!({"imagePullSecrets": [{"name": "s"}]})), secret);
    assert_eq!(
        check(value!({"volumes": [{"secret": {"secretName": "s"}}]})),
        secret
    );
    assert_eq!(
        check(
            value!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]})
        ),
        "a mirror pod may not use ServiceAccountToken volume projections"
    );
}
