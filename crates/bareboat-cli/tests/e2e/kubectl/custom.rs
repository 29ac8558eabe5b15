//! A custom kind, CronTab: schema, defaults, rules, columns, status, scale.

use super::Kubectl;

/// The definition; the tests below use every part of it.
pub(super) const CRON_TABS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Schedule, type: string, jsonPath: .spec.schedule}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Image, type: string, jsonPath: .spec.image, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.image
    schema:
      openAPIV3Schema:
        type: object
        description: A job that runs again and again.
        properties:
          spec:
            type: object
            required: [schedule]
            properties:
              schedule: {type: string, description: When it runs., pattern: '^(\S+\s+){4}\S+$'}
              image: {type: string, default: sailor}
              replicas: {type: integer, minimum: 0, maximum: 9, default: 1}
              args: {type: array, items: {type: string}, x-kubernetes-list-type: set}
            x-kubernetes-validations:
            - {rule: "self.image != 'pirate'", message: pirates are not allowed}
          status:
            type: object
            properties:
              replicas: {type: integer}
              phase: {type: string}
"#;

/// Returns a CronTab with a name.
pub(super) fn cron_tab(name: &str) -> String {
    format!(
        "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {{name: {name}}}\n\
         spec: {{schedule: '* * * * */5', args: [a, b]}}\n"
    )
}

/// Creates the definition and waits until it is served.
pub(super) fn define(kubectl: &Kubectl) {
    kubectl.says_for("apply -f -", CRON_TABS, &["created"]);
    kubectl.says(
        "wait --for=condition=Established crd/crontabs.stable.example.com --timeout=240s",
        &["condition met"],
    );
}

#[test]
fn a_custom_kind_is_listed_explained_and_described_like_any_other() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl);
    kubectl.says_for(
        "apply -f -",
        &cron_tab("one"),
        &["crontab.stable.example.com/one created"],
    );
    kubectl.says(
        "get crontabs",
        &["NAME SCHEDULE REPLICAS AGE", "one * * * * */5 1"],
    );
    kubectl.says(
        "get ct -o wide",
        &[
            "NAME SCHEDULE REPLICAS IMAGE AGE",
            "one * * * * */5 1 sailor",
        ],
    );
    kubectl.says("get ct/one -o yaml", &["image: sailor", "generation: 1"]);
    kubectl.says("get all", &["crontab.stable.example.com/one"]);
    assert_eq!(
        kubectl.gives("get ct --field-selector spec.image=sailor -o name"),
        "crontab.stable.example.com/one\n"
    );
    assert_eq!(
        kubectl.gives("get ct --field-selector spec.image=x -o name"),
        ""
    );
    kubectl.refuses(
        "get ct --field-selector spec.schedule=x",
        &["field label not supported: spec.schedule"],
    );
    kubectl.says(
        "explain crontab",
        &[
            "KIND: CronTab",
            "A job that runs again and again.",
            "spec <Object>",
        ],
    );
    kubectl.says("explain ct.spec.schedule", &["<string>", "When it runs."]);
    kubectl.says(
        "explain ct --recursive",
        &["managedFields", "replicas <integer>"],
    );
    kubectl.says(
        "api-resources --api-group=stable.example.com",
        &["crontabs ct stable.example.com/v1 true CronTab"],
    );
    kubectl.says("api-versions", &["stable.example.com/v1"]);
    kubectl.says(
        "describe ct one",
        &["Kind: CronTab", "Schedule: * * * * */5", "Replicas: 1"],
    );
    kubectl.says("get crd", &["crontabs.stable.example.com"]);
    kubectl.says(
        "describe crd crontabs.stable.example.com",
        &["NamesAccepted"],
    );
}

#[test]
fn schema_and_rules_of_a_custom_kind_apply_to_every_write() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl);
    kubectl.gives_for("create -f -", &cron_tab("one"));
    for (patch, complaint) in [
        (r#"{"spec":{"image":"pirate"}}"#, "pirates are not allowed"),
        (
            r#"{"spec":{"replicas":10}}"#,
            "should be less than or equal to 9",
        ),
        (r#"{"spec":{"replicas":"two"}}"#, "must be of type integer"),
        (
            r#"{"spec":{"schedule":null}}"#,
            "spec.schedule: Required value",
        ),
        (r#"{"spec":{"args":["a","a"]}}"#, "Duplicate value"),
        (
            r#"{"spec":{"schedule":"never"}}"#,
            "spec.schedule in body should match",
        ),
    ] {
        kubectl.refuses(
            &format!("patch ct one --type=merge -p '{patch}'"),
            &["The CronTab \"one\" is invalid", complaint],
        );
    }
    kubectl.refuses(
        r#"patch ct one --type=strategic -p '{"spec":{"replicas":2}}'"#,
        &["strategic-merge-patch", "not supported"],
    );
    kubectl.says(
        r#"patch ct one --type=json -p '[{"op":"add","path":"/spec/args/-","value":"c"}]'"#,
        &["patched"],
    );
    kubectl.refuses_for(
        "create -f -",
        &(cron_tab("two") + "extra: 1\n"),
        &["strict decoding error", "unknown field \"extra\""],
    );
    kubectl.says_for(
        "create -f - --validate=false",
        &(cron_tab("two") + "extra: 1\n"),
        &["created"],
    );
    assert!(!kubectl.gives("get ct two -o yaml").contains("extra"));
}

#[test]
fn status_and_scale_of_a_custom_kind_are_written_separately() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl);
    kubectl.gives_for("create -f -", &cron_tab("one"));
    let get = |path: &str| kubectl.gives(&format!("get ct one -o 'jsonpath={path}'"));
    kubectl.says("scale ct/one --replicas=3", &["scaled"]);
    assert_eq!(get("{.spec.replicas}"), "3");
    kubectl.refuses(
        "scale ct/one --replicas=4 --current-replicas=1",
        &["Expected replicas to be 1, was 3"],
    );
    kubectl.says(
        "get --raw /apis/stable.example.com/v1/namespaces/default/crontabs/one/scale",
        &["\"kind\":\"Scale\"", "\"replicas\":3"],
    );
    kubectl.refuses("scale ct/one --replicas=99", &["less than or equal to 9"]);
    let before = get("{.metadata.generation}");
    kubectl.says(
        r#"patch ct one --type=merge -p '{"status":{"phase":"Lost"}}'"#,
        &["patched (no change)"],
    );
    assert_eq!(get("{.status.phase}"), "");
    kubectl.says(
        r#"patch ct one --subresource=status --type=merge -p '{"status":{"phase":"Ready","replicas":3},"spec":{"replicas":7}}'"#,
        &["patched"],
    );
    assert_eq!(get("{.status.phase} {.spec.replicas}"), "Ready 3");
    assert_eq!(get("{.metadata.generation}"), before);
    kubectl.says(
        "wait --for='jsonpath={.status.phase}=Ready' ct/one --timeout=240s",
        &["condition met"],
    );
    kubectl.refuses(
        "wait --for='jsonpath={.status.phase}=Done' ct/one --timeout=1s",
        &["timed out"],
    );
}

#[test]
fn a_definition_can_change_and_errors_are_reported() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl);
    kubectl.gives_for("create -f -", &cron_tab("one"));
    let more = CRON_TABS.replace(
        "              image: {type: string, default: sailor}",
        "              image: {type: string, default: sailor}\n              shell: {type: string, default: sh}",
    );
    assert_ne!(more, CRON_TABS);
    kubectl.says_for("apply -f -", &more, &["configured"]);
    // An old object shows a new default at once.
    crate::process::eventually("the default is shown", || {
        (kubectl.gives("get ct one -o 'jsonpath={.spec.shell}'") == "sh").then_some(())
    });
    kubectl.refuses_for(
        "apply -f -",
        &CRON_TABS.replace("openAPIV3Schema:", "openAPIV3Schema: {}\n      other:"),
        &["other"],
    );
    kubectl.refuses_for(
        "create -f -",
        &CRON_TABS.replace("crontabs.stable", "cabs.stable"),
        &[
            "metadata.name",
            "must be spec.names.plural+\".\"+spec.group",
        ],
    );
    kubectl.refuses_for(
        "apply -f -",
        &CRON_TABS.replace("self.image != 'pirate'", "self.imagee != 'pirate'"),
        &["undefined field 'imagee'"],
    );
}
