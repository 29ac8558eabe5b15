//! `bareboat plugin create`: `kubectl create boat ada --berths 6` with a stock kubectl.

use crate::kubectl::Kubectl;
use crate::process::run;
use crate::server::bareboat;
use std::path::Path;
use std::process::Command;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [owner]
            properties:
              owner: {type: string, description: Who sails it.}
              berths: {type: integer, maximum: 12}
              motor: {type: boolean}
              ports: {type: array, items: {type: string}}
              deck: {type: object, properties: {lengthMetres: {type: number}}}
              server: {type: string}
"#;

/// Adds the folder of plug-ins to the path of a command.
fn with_plugins(mut command: Command, dir: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(dir.to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).unwrap());
    command
}

#[test]
fn kubectl_creates_objects_with_flags_of_their_schema() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let dir = kubectl.home.path().join("bin");
    let definition = kubectl.home.path().join("definition.yaml");
    std::fs::write(&definition, DEFINITION).unwrap();
    kubectl.gives("apply -f definition.yaml");
    kubectl.gives("wait --for condition=Established crd boats.example.com");

    let mut plugin = bareboat(["plugin", "create", "boats", "configmaps", "--dir"]);
    plugin
        .arg(&dir)
        .env("KUBECONFIG", kubectl.home.kubeconfig());
    let said = run(&mut plugin, "");
    assert!(said.status.success(), "{}", said.all());
    assert!(
        said.stdout.contains("kubectl create boat NAME, 6 flags"),
        "{}",
        said.all()
    );
    assert!(said.stderr.contains("not in PATH"), "{}", said.all());

    let create = |line: &str| run(&mut with_plugins(kubectl.command(line), &dir), "");
    let made = create(
        "create boat ada --owner 'Ada \"L\" $HOME' --berths 6 --motor=false --ports Bremen --ports Hull \
         --deck-length-metres 9.5 --spec-server local --label app=x",
    );
    assert!(made.status.success(), "{}", made.all());
    assert_eq!(made.stdout, "boat.example.com/ada created\n");
    let spec = kubectl.gives("get boat ada -o jsonpath={.spec}");
    let spec: serde_json::Value = serde_json::from_str(&spec).unwrap();
    let wanted = serde_json::json!({
        "owner": "Ada \"L\" $HOME", "berths": 6, "motor": false, "ports": ["Bremen", "Hull"],
        "deck": {"lengthMetres": 9.5}, "server": "local",
    });
    assert_eq!(spec, wanted);

    // Flags of kubectl work, and the server's answer arrives unchanged.
    let dry = create("create boat bob --owner x --dry-run=server -o name -n default");
    assert_eq!(dry.stdout, "boat.example.com/bob\n", "{}", dry.all());
    let refused = create("create boat bob --owner x --berths 40");
    assert!(!refused.status.success());
    assert!(
        refused
            .stderr
            .contains("should be less than or equal to 12"),
        "{}",
        refused.all()
    );
    let unset = create("create boat bob");
    assert!(
        unset.stderr.contains("required flag \"owner\" not set"),
        "{}",
        unset.all()
    );
    let help = create("create boat --help");
    assert!(help.stdout.contains("--berths INTEGER"), "{}", help.all());
    assert!(
        help.stdout.contains("Who sails it (required)"),
        "{}",
        help.all()
    );

    // From a file, without a server, under another name.
    let mut plugin = bareboat(["plugin", "create", "--name", "ship", "-f"]);
    plugin.arg(&definition).arg("--dir").arg(&dir);
    let said = run(&mut plugin, "");
    assert!(said.status.success(), "{}", said.all());
    let made = create("create ship eve --owner Eve");
    assert_eq!(
        made.stdout,
        "boat.example.com/eve created\n",
        "{}",
        made.all()
    );

    let mut plugin = bareboat(["plugin", "create", "boots"]);
    let said = run(plugin.env("KUBECONFIG", kubectl.home.kubeconfig()), "");
    assert!(
        said.stderr.contains("has no resource \"boots\""),
        "{}",
        said.all()
    );
}
