//! Kinds of well-known projects, with simplified definitions: VirtualService after Istio, VirtualMachine after
//! KubeVirt, and Foo. CronTab has its own module.

use super::Kubectl;

const VIRTUAL_SERVICES: &str = include_str!("definitions/virtual-services.yaml");
const VIRTUAL_MACHINES: &str = include_str!("definitions/virtual-machines.yaml");
/// The kind of the sample controllers.
pub(crate) const FOOS: &str = include_str!("definitions/foos.yaml");

/// Creates a definition and waits until it is served.
pub(crate) fn define(kubectl: &Kubectl, definition: &str, name: &str) {
    kubectl.says_for("apply -f -", definition, &[&format!("{name} created")]);
    kubectl.says(
        &format!("wait --for=condition=Established crd/{name} --timeout=240s"),
        &["condition met"],
    );
}

/// Checks that patches are refused.
fn refuses_patches(kubectl: &Kubectl, object: &str, patches: &[(&str, &str)]) {
    for (patch, why) in patches {
        kubectl.refuses(
            &format!("patch {object} --type=merge -p '{patch}'"),
            &["is invalid", why],
        );
    }
}

const REVIEWS: &str = "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  hosts: [reviews.prod]
  gateways: [mesh, edge]
  exportTo: ['.']
  http:
  - name: old
    timeout: 5s
    match: [{uri: {prefix: /catalog}}]
    route:
    - {destination: {host: reviews, subset: v2}, weight: 90}
    - {destination: {host: reviews, subset: v1}, weight: 10}
";

#[test]
fn virtual_services_validate_routes() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(
        &kubectl,
        VIRTUAL_SERVICES,
        "virtualservices.networking.istio.io",
    );
    kubectl.says_for(
        "apply -f -",
        REVIEWS,
        &["virtualservice.networking.istio.io/reviews created"],
    );
    let row = r#"reviews ["mesh","edge"] ["reviews.prod"]"#;
    kubectl.says("get vs", &["NAME GATEWAYS HOSTS AGE", row]);
    kubectl.says("get istio-io", &[row]);
    kubectl.says("get vs -o wide", &["HOSTS AGE EXPORTED", r#"["."]"#]);
    kubectl.says(
        "get virtualservices.v1beta1.networking.istio.io",
        &[
            "Warning: networking.istio.io/v1beta1 VirtualService is old; use v1",
            row,
        ],
    );
    assert_eq!(
        kubectl.gives("get vs reviews -o 'jsonpath={range .spec.http[*].route[*]}{.destination.subset}={.weight};{end}'"),
        "v2=90;v1=10;"
    );
    kubectl.says(
        "explain vs.spec.http.route",
        &["destination <Object> -required-", "weight <integer>"],
    );
    kubectl.says(
        "explain virtualservices --api-version=networking.istio.io/v1beta1 --recursive",
        &["VERSION: v1beta1", "hosts <[]string> -required-"],
    );
    refuses_patches(
        &kubectl,
        "vs reviews",
        &[
            (
                r#"{"spec":{"http":[{"timeout":"0s"}]}}"#,
                r#"spec.http[0].timeout: Invalid value: "0s": must be a valid duration greater than 1ms"#,
            ),
            (
                r#"{"spec":{"http":[{"match":[{"uri":{"exact":"a","prefix":"b"}}]}]}}"#,
                r#""spec.http[0].match[0].uri" must validate one and only one schema (oneOf)"#,
            ),
            (
                r#"{"spec":{"http":[{"route":[{"weight":101}]}]}}"#,
                "spec.http[0].route[0].destination: Required value",
            ),
            (
                r#"{"spec":{"hosts":[]}}"#,
                "spec.hosts in body should have at least 1 items",
            ),
            (
                r#"{"spec":{"hosts":"all"}}"#,
                "spec.hosts in body must be of type array",
            ),
        ],
    );
    kubectl.says_for("diff -f -", REVIEWS, &[]);
    kubectl.says_for(
        "apply -f -",
        &REVIEWS.replace("weight: 90", "weight: 80"),
        &["configured"],
    );
    kubectl.says("delete vs reviews", &["deleted"]);
    kubectl.says("get istio-io", &["No resources found"]);
}

const TEST_VM: &str = "
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: testvm}
spec:
  template:
    metadata: {labels: {kubevirt.io/size: small}}
    spec:
      domain:
        cpu: {cores: 2}
        memory: {guest: 64Mi}
        devices: {disks: [{name: root, bootOrder: 1}, {name: cloudinit}]}
";

#[test]
fn virtual_machines_have_a_status() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    define(&kubectl, VIRTUAL_MACHINES, "virtualmachines.kubevirt.io");
    kubectl.says_for("apply --server-side -f -", TEST_VM, &["serverside-applied"]);
    kubectl.says("get vm", &["NAME AGE STATUS READY", "testvm"]);
    kubectl.says("get vms -o wide", &["READY STRATEGY", "Halted"]);
    kubectl.says("get all", &["virtualmachine.kubevirt.io/testvm"]);
    let halted = "get vm --field-selector spec.runStrategy=Halted -o name";
    assert_eq!(kubectl.gives(halted), "virtualmachine.kubevirt.io/testvm\n");
    kubectl.says(
        "explain vm.spec.runStrategy",
        &["ENUM: Always Halted Manual RerunOnFailure", "When it runs."],
    );
    refuses_patches(
        &kubectl,
        "vm testvm",
        &[
            (
                r#"{"spec":{"runStrategy":"Sometimes"}}"#,
                r#"Unsupported value: "Sometimes": supported values: "Always", "Halted", "Manual", "RerunOnFailure""#,
            ),
            (
                r#"{"spec":{"template":{"spec":{"domain":{"devices":{"disks":[{"name":"a"},{"name":"a"}]}}}}}}"#,
                "devices.disks[1]: Duplicate value",
            ),
            (
                r#"{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"much"}}}}}}"#,
                "memory.guest in body should match",
            ),
            (
                r#"{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":0}}}}}}"#,
                "cores in body should be greater than or equal to 1",
            ),
            (
                r#"{"spec":{"template":null}}"#,
                "spec.template: Required value",
            ),
        ],
    );
    let run = |strategy: &str| {
        format!(r#"patch vm testvm --type=merge -p '{{"spec":{{"runStrategy":"{strategy}"}}}}'"#)
    };
    kubectl.says(&run("Always"), &["patched"]);
    kubectl.refuses(&run("Manual"), &["only a halted machine becomes manual"]);
    assert_eq!(kubectl.gives(halted), "");

    // The status is edited through its subresource, which does not change the spec.
    let editor = kubectl.home.path().join("editor");
    let script = "sed -i -e 's/runStrategy: Always/runStrategy: Halted/' -e '$a status: {printableStatus: Running, \
                  conditions: [{type: Ready, status: \"True\"}]}' \"$1\"\n";
    std::fs::write(&editor, script).unwrap();
    let edited = crate::process::run(
        kubectl
            .command("edit vm testvm --subresource=status")
            .env("KUBE_EDITOR", format!("sh {}", editor.display())),
        "",
    );
    assert!(edited.stdout.contains("testvm edited"), "{}", edited.all());
    kubectl.says("get vm -o wide", &["Running True Always"]);
    kubectl.says(
        "wait --for=condition=Ready vm/testvm --timeout=240s",
        &["condition met"],
    );
    kubectl.refuses(
        r#"patch vm testvm --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready"}]}}'"#,
        &["status.conditions[0].status: Required value"],
    );
    kubectl.refuses("scale vm testvm --replicas=2", &["NotFound"]);
    kubectl.says("delete vm testvm", &["deleted"]);
}

#[test]
fn foos_are_in_a_protected_group() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let unapproved = FOOS.replace("api-approved.kubernetes.io", "example.com/not");
    kubectl.refuses_for(
        "create -f -",
        &unapproved,
        &["metadata.annotations[api-approved.kubernetes.io]: Required value"],
    );
    define(&kubectl, FOOS, "foos.samplecontroller.k8s.io");
    let example = "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata: {name: example}\n\
                   spec: {deploymentName: example, replicas: 1}\n";
    kubectl.says_for(
        "create -f -",
        example,
        &["foo.samplecontroller.k8s.io/example created"],
    );
    kubectl.says("get foos", &["NAME AGE", "example"]);
    kubectl.says(
        "explain foo.spec",
        &["deploymentName <string>", "replicas <integer>"],
    );
    refuses_patches(
        &kubectl,
        "foo example",
        &[
            (
                r#"{"spec":{"replicas":11}}"#,
                "spec.replicas in body should be less than or equal to 10",
            ),
            (
                r#"{"spec":{"replicas":0}}"#,
                "spec.replicas in body should be greater than or equal to 1",
            ),
            (
                r#"{"spec":{"replicas":1.5}}"#,
                "spec.replicas in body must be of type integer",
            ),
        ],
    );
    kubectl.says(
        r#"patch foo example --subresource=status --type=merge -p '{"status":{"availableReplicas":1}}'"#,
        &["patched"],
    );
    kubectl.says(
        "describe foo example",
        &["Available Replicas: 1", "Events: <none>"],
    );
    kubectl.says(
        "delete crd foos.samplecontroller.k8s.io --timeout=240s",
        &["deleted"],
    );
    // The message depends on kubectl's discovery cache.
    kubectl.refuses("get foos", &["the server"]);
}
