//! Runs the example on a socket and uses it with kubectl.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running example, and a kubectl for it.
struct Hello {
    server: Child,
    address: String,
    home: TempDir,
}

impl Hello {
    fn start(arguments: &[&str]) -> Hello {
        let mut server = Command::new(env!("CARGO_BIN_EXE_hello"))
            .args(["--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = server.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line
            .split_whitespace()
            .last()
            .expect("the first line ends with the address");
        Hello {
            address: address.to_owned(),
            server,
            home: TempDir::new().unwrap(),
        }
    }

    /// Runs kubectl, which must succeed, and returns its output.
    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = Command::new("kubectl")
            .env("KUBECONFIG", "/dev/null")
            .env("HOME", self.home.path())
            .args(["--server", &self.address])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns a table without the column of ages.
    fn table(&self, arguments: &[&str]) -> Vec<Vec<String>> {
        let text = self.kubectl(arguments);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let rows = text.lines().map(words).map(|mut row: Vec<String>| {
            row.pop();
            row
        });
        rows.collect()
    }
}

impl Drop for Hello {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn kubectl_is_here() -> bool {
    let found = Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "kubectl is needed to test the example"
        );
        println!("left out: kubectl is not installed");
    }
    found
}

fn manifest() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("foo.yaml");
    path.to_str().unwrap().to_owned()
}

#[test]
fn two_versions_of_a_kind_are_served_side_by_side() {
    if !kubectl_is_here() {
        return;
    }
    let hello = Hello::start(&[]);
    let foo_v1 = "foos.v1.hello.zeng.dev";

    // Written as v1, read as v2 under the short name, with defaults of both.
    hello.kubectl(&["apply", "-f", &manifest()]);
    assert_eq!(
        hello.table(&["get", "fo"]),
        [
            vec!["NAME", "IMAGE", "MESSAGE", "PHASE"],
            vec!["hi", "busybox:1.37", "hi", "there"],
        ]
    );
    let spec = |resource: &str| hello.kubectl(&["get", resource, "hi", "-o", "jsonpath={.spec}"]);
    assert_eq!(
        spec("foo"),
        r#"{"config":{"msg":"hi there","msg1":"and then?"},"image":"busybox:1.37"}"#
    );

    // Written as v2, read as v1.
    let patch = |resource: &str, more: &[&str], patch: &str| {
        let start = ["patch", resource, "hi", "--type", "merge", "-p", patch];
        hello.kubectl(&[&start, more].concat());
    };
    patch(
        "foo",
        &[],
        r#"{"spec":{"image":"own:1","config":{"msg1":"bye"}}}"#,
    );
    assert_eq!(spec(foo_v1), r#"{"msg":"hi there","msg1":"bye"}"#);
    assert_eq!(
        hello.table(&["get", foo_v1]),
        [vec!["NAME", "MESSAGE"], vec!["hi", "hi", "there"]]
    );

    // A write in v1 keeps the fields that v1 does not have: image and status.
    let ready = r#"{"status":{"phase":"Ready"}}"#;
    patch("foo", &["--subresource", "status"], ready);
    patch(foo_v1, &[], r#"{"spec":{"msg":"hello"}}"#);
    assert_eq!(
        hello.table(&["get", "fo"])[1],
        ["hi", "own:1", "hello", "Ready"]
    );

    let explained = hello.kubectl(&["explain", "foos.spec.config.msg1"]);
    assert!(explained.contains("The second message."), "{explained:?}");
    hello.kubectl(&["delete", "foo", "hi"]);
    assert_eq!(hello.kubectl(&["get", "foos", "-o", "name"]), "");
}

#[test]
fn a_file_keeps_the_objects() {
    if !kubectl_is_here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("foos.db");
    let flags = ["--sqlite", file.to_str().unwrap()];
    Hello::start(&flags).kubectl(&["create", "-f", &manifest()]);
    let names = Hello::start(&flags).kubectl(&["get", "foos", "-o", "name"]);
    assert_eq!(names, "foo.hello.zeng.dev/hi\n");
}
