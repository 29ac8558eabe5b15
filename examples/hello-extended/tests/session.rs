//! Runs the session of the README, in memory and on an etcd.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../crates/bareboat-etcd/tests/etcd/member.rs"]
mod etcd;

use bareboat_sessions::{Session, available, workspace_binary};

fn session() -> Session {
    Session::new("README.md")
        .program("hello-extended", env!("CARGO_BIN_EXE_hello-extended"))
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .port(6443)
        .port(9443)
}

#[test]
fn the_readme_is_true() {
    if available("kubectl") {
        session().run();
    }
}

#[test]
fn the_readme_is_true_on_etcd() {
    if !available("kubectl") || !available("etcd") {
        return;
    }
    let etcd = etcd::Member::start(&[]).unwrap();
    let storage = etcd.url(etcd.port, "hello");
    session().env("HELLO_STORAGE", &storage).run();
    let stored = etcd.paths("/hello/", "o/hello.zeng.dev/foos/");
    assert_eq!(stored, ["o/hello.zeng.dev/foos/default/hi"]);
}
