//! Streams of pods, nodes and services with kubectl: through a kubelet, and by functions of a program.

mod checks;
mod in_process;
mod kubelet;

use crate::kubectl::words;
use crate::process::{Output, run};
use crate::tools;
use std::path::PathBuf;
use std::process::Command;

/// A kubectl for one server.
pub(super) struct Client {
    program: PathBuf,
    /// Flags of every command.
    flags: Vec<String>,
    kubeconfig: PathBuf,
    /// A directory for files of the test.
    home: PathBuf,
    /// Whether streams use WebSockets; otherwise SPDY.
    websockets: bool,
}

impl Client {
    fn new(flags: Vec<String>, kubeconfig: PathBuf, home: PathBuf) -> Option<Client> {
        Some(Client {
            program: tools::kubectl()?,
            flags,
            kubeconfig,
            home,
            websockets: true,
        })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        let websockets = self.websockets.to_string();
        command
            .args(&self.flags)
            .args(words(line))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", &websockets)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", &websockets)
            .env("HOME", &self.home)
            .current_dir(&self.home);
        command
    }

    fn run(&self, line: &str, input: &str) -> Output {
        run(&mut self.command(line), input)
    }

    /// Returns the output of a command that succeeds.
    fn gives(&self, line: &str, input: &str) -> String {
        let output = self.run(line, input);
        assert!(output.status.success(), "kubectl {line}: {}", output.all());
        output.stdout
    }

    /// Checks that a command fails with these words.
    fn refuses(&self, line: &str, words: &str) {
        let output = self.run(line, "");
        assert!(!output.status.success(), "kubectl {line} should fail");
        assert!(
            output.stderr.contains(words),
            "kubectl {line}: {words:?} is not in {}",
            output.all()
        );
    }

    /// Applies a manifest; the first service accounts may still be missing.
    fn apply(&self, manifest: &str) {
        crate::process::eventually("the manifest is applied", || {
            let output = self.run("apply -f -", manifest);
            output.status.success().then_some(())
        });
    }
}

/// Applies a pod, and lets it run: kubectl forwards ports of running pods only.
pub(super) fn run_pod(client: &Client, name: &str, node: &str) {
    client.apply(&pod(name, node));
    let patch = "'{\"status\":{\"phase\":\"Running\"}}'";
    client.gives(
        &format!("patch pod {name} --subresource=status -p {patch}"),
        "",
    );
}

/// A pod with one container, `app`.
pub(super) fn pod(name: &str, node: &str) -> String {
    let node = match node {
        "" => String::new(),
        node => format!("  nodeName: {node}\n"),
    };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n{node}  containers:\n  - name: app\n    image: x\n"
    )
}
