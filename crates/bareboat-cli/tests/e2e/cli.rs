//! The command line: help, precedence of settings, and errors with advice.

use crate::process::{Output, run};
use crate::server::{Home, Running, bareboat};
use crate::tools;
use bareboat_sessions::Port;
use std::process::{Command, Stdio};

fn says(arguments: &[&str]) -> Output {
    run(&mut bareboat(arguments), "")
}

/// Checks that a command fails in a given way; it runs in its own directory.
fn refused(mut command: Command, code: i32, wanted: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let output = run(command.current_dir(&dir), "");
    assert_eq!(output.status.code(), Some(code), "{}", output.all());
    assert!(output.stderr.starts_with("error: "), "{}", output.all());
    assert!(!output.stderr.contains("panicked"), "{}", output.all());
    for words in wanted {
        assert!(
            output.stderr.contains(words),
            "{words:?} is not in {}",
            output.all()
        );
    }
}

#[test]
fn help_shows_examples_and_defaults() {
    let help = says(&["--help"]);
    assert!(help.status.success());
    for words in [
        "The Kubernetes API without Kubernetes",
        "serve",
        "completions",
        "Examples:",
        "bareboat serve --in-memory",
    ] {
        assert!(help.stdout.contains(words), "{words:?}: {}", help.stdout);
    }
    let help = says(&["serve", "--help"]);
    for words in [
        "--data-dir",
        "BAREBOAT_DATA_DIR",
        "[default: ./bareboat-data]",
        "--bind",
        "--token-file",
        "--in-memory",
        "--retain-for",
    ] {
        // Lines are wrapped to the terminal.
        let text = help.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words:?}: {}", help.stdout);
    }
    let nothing = says(&[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(nothing.stderr.contains("Usage: bareboat"));
}

#[test]
fn the_version_names_the_program_and_the_api() {
    let version = says(&["version"]).stdout;
    assert!(version.starts_with("bareboat ") && version.contains("Kubernetes v1."));
    assert!(says(&["--version"]).stdout.starts_with("bareboat "));
}

#[test]
fn a_password_on_the_command_line_is_warned_about() {
    let address = "postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=1";
    let given = says(&["doctor", "--storage", address]);
    assert!(
        given.stderr.contains("list of processes"),
        "{}",
        given.all()
    );
    assert!(given.stderr.contains("password-file="), "{}", given.all());
    assert!(!given.all().contains("hunter2"), "{}", given.all());
    let mut quiet = bareboat(["doctor"]);
    let quiet = run(quiet.env("BAREBOAT_STORAGE", address), "");
    assert!(
        !quiet.stderr.contains("list of processes"),
        "{}",
        quiet.all()
    );
    assert!(!quiet.all().contains("hunter2"), "{}", quiet.all());
}

#[test]
fn completions_are_written_for_every_shell() {
    for (shell, sign) in [
        ("bash", "complete -F _bareboat"),
        ("zsh", "#compdef bareboat"),
        ("fish", "complete -c bareboat"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = says(&["completions", shell]);
        assert!(script.status.success());
        assert!(script.stdout.contains(sign), "{shell}");
    }
    refused(bareboat(["completions", "csh"]), 2, &["bash", "zsh"]);
}

#[test]
fn a_closed_pipe_does_not_panic() {
    for arguments in [&["completions", "bash"][..], &["--help"], &["version"]] {
        let mut child = bareboat(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn flags_override_the_environment_and_the_environment_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let taken = [Port::free(), Port::free(), Port::free()];
    let ports = taken.each_ref().map(|port| port.number);
    let config = dir.path().join("bareboat.yaml");
    let data = dir.path().join("from-file");
    std::fs::write(
        &config,
        format!(
            "bind: 127.0.0.1:{}\ndataDir: {}\ninMemory: true\n",
            ports[0],
            data.display()
        ),
    )
    .unwrap();
    let bind = |port| format!("127.0.0.1:{port}");
    let serves_on = |port: u16, flag: Option<u16>, variable: Option<u16>| {
        let mut command = bareboat(["serve", "--config"]);
        command.arg(&config);
        if let Some(port) = flag {
            command.args(["--bind", &bind(port)]);
        }
        if let Some(port) = variable {
            command.env("BAREBOAT_BIND", bind(port));
        }
        let mut server = Running::start(command);
        server.ready();
        assert_eq!(server.url(), format!("https://127.0.0.1:{port}"));
        assert!(server.greeting.contains("in memory"), "{}", server.greeting);
        assert!(server.stop().0.success());
    };
    serves_on(ports[0], None, None);
    serves_on(ports[1], None, Some(ports[1]));
    serves_on(ports[2], Some(ports[2]), Some(ports[1]));
    assert!(data.join("admin.kubeconfig").is_file());
    assert!(!data.join("state.db").exists(), "it was kept in memory");

    let mut command = bareboat(["serve", "--in-memory", "false"]);
    command
        .args(["--bind", "127.0.0.1:0", "--config"])
        .arg(&config);
    let mut server = Running::start(command);
    server.ready();
    assert!(data.join("state.db").is_file(), "a flag can say no");
}

#[test]
fn a_second_server_in_the_same_directory_is_refused() {
    let home = Home::new();
    let server = home.serve();
    let mut second = bareboat(["serve", "--bind", "127.0.0.1:0", "--data-dir"]);
    second.arg(home.data());
    refused(second, 1, &["in use by another server", "--data-dir"]);
    // It would store no objects there, but write a kubeconfig for itself.
    let kubeconfig = std::fs::read_to_string(home.kubeconfig()).unwrap();
    let mut second = bareboat([
        "serve",
        "--in-memory",
        "--bind",
        "127.0.0.1:0",
        "--data-dir",
    ]);
    second.arg(home.data());
    refused(second, 1, &["in use by another server", "--data-dir"]);
    assert_eq!(
        std::fs::read_to_string(home.kubeconfig()).unwrap(),
        kubeconfig
    );
    assert!(server.stop().0.success());
    home.serve();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let home = Home::new();
    let _server = home.serve();
    let other = tempfile::tempdir().unwrap();
    let mut second = bareboat(["serve", "--bind", &home.address(), "--data-dir"]);
    second.arg(other.path());
    refused(second, 1, &[&home.address(), "--bind"]);
}

#[test]
fn wrong_settings_are_refused_with_advice() {
    let cases: &[(&[&str], i32, &[&str])] = &[
        (
            &["--bind", "nowhere"],
            2,
            &["'nowhere'", "--bind", "--help"],
        ),
        (&["--bind", "127.0.0.1:99999"], 2, &["127.0.0.1:99999"]),
        (&["--frobnicate"], 2, &["--frobnicate", "--help"]),
        (&["--retain-for", "soon"], 2, &["soon", "10m"]),
        (&["--retain-revisions", "-1"], 2, &["-1"]),
        (&["--retain-bytes", "much"], 2, &["much", "1Gi"]),
        (&["--in-memory", "perhaps"], 2, &["perhaps", "true, false"]),
        (&["--log", "a=b=c"], 1, &["a=b=c", "filter"]),
        (&["--tls-cert", "x"], 2, &["--tls-key"]),
        (
            &["--tls-cert", "none.crt", "--tls-key", "none.key"],
            1,
            &["none.crt", "cannot be read"],
        ),
        (&["--client-ca", "none.crt"], 1, &["none.crt"]),
        (&["--token-file", "none.csv"], 1, &["none.csv"]),
        (&["--config", "none.yaml"], 1, &["none.yaml"]),
        (&["--data-dir", "/dev/null"], 1, &["/dev/null"]),
        (&["--data-dir", "/proc/none"], 1, &["/proc/none"]),
        (&["--san", "no name"], 1, &["no name", "DNS"]),
    ];
    for (arguments, code, wanted) in cases {
        let mut command = bareboat(["serve"]);
        if !arguments.contains(&"--bind") {
            command.args(["--bind", "127.0.0.1:0"]);
        }
        command.args(*arguments);
        refused(command, *code, wanted);
    }
}

#[test]
fn files_with_errors_are_refused_with_the_position() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let cases: &[(&str, &str, &[&str])] = &[
        ("--config", "bindd: x\n", &["bindd", "--help"]),
        ("--config", "bind: [1\n", &["line 1"]),
        ("--config", "bind: x\n", &["'x'", "--bind"]),
        ("--config", "log: a\nlog: b\n", &["log"]),
        ("--config", "inMemory: 3\n", &["'3'", "--in-memory"]),
        ("--token-file", "s3cret\n", &["line 1", "token,user,uid"]),
        ("--token-file", "s3cret,,1\n", &["line 1"]),
        ("--client-ca", "s3cret\n", &["file", "no certificate"]),
        ("--tls-cert", "s3cret\n", &["file", "no certificate"]),
        ("--service-account-key-file", "s3cret\n", &["file", "key"]),
        (
            "--service-account-signing-key-file",
            "s3cret\n",
            &["file", "key"],
        ),
    ];
    for (flag, text, wanted) in cases {
        std::fs::write(&file, text).unwrap();
        let mut command = bareboat(["serve"]);
        if !text.starts_with("bind") {
            command.args(["--bind", "127.0.0.1:0"]);
        }
        command.arg(flag).arg(&file);
        if *flag == "--tls-cert" {
            command.arg("--tls-key").arg(&file);
        }
        let shown = run(command.current_dir(dir.path()), "");
        assert!(!shown.stderr.contains("s3cret"), "{}", shown.all());
        refused(command, 1, wanted);
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let home = Home::new();
    // A file in place of a directory stops even root.
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("certificates"), "").unwrap();
    let mut command = bareboat(["serve", "--bind", "127.0.0.1:0", "--data-dir"]);
    command.arg(home.data());
    refused(command, 1, &["certificates"]);
}

#[test]
fn data_in_memory_is_lost_and_data_in_files_is_kept() {
    let Some(kubectl) = tools::kubectl() else {
        return;
    };
    for (flags, kept) in [(&["--in-memory"][..], false), (&[], true)] {
        let home = Home::with(flags);
        let kubectl = |arguments: &[&str]| {
            run(
                Command::new(&kubectl)
                    .args(arguments)
                    .env("KUBECONFIG", home.kubeconfig())
                    .env("HOME", home.path()),
                "",
            )
        };
        let server = home.serve();
        let created = kubectl(&["create", "configmap", "kept"]);
        assert!(created.status.success(), "{}", created.all());
        let (status, log) = server.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        assert_eq!(log, "", "a good end needs no word");
        let _server = home.serve();
        let found = kubectl(&["get", "configmap", "kept"]);
        assert_eq!(found.status.success(), kept, "{}", found.all());
    }
}

#[test]
fn a_quiet_server_prints_nothing_and_ends_cleanly_on_interrupt() {
    let home = Home::with(&["--quiet"]);
    let server = home.launch();
    crate::process::eventually("the kubeconfig", || {
        home.kubeconfig().is_file().then_some(())
    });
    let (status, log) = server.stop_by("INT");
    assert_eq!(status.code(), Some(0));
    assert_eq!(log, "");
}
