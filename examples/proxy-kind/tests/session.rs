//! Runs the sessions of the example: that of the README with kubectl, and that of informers.md with client-go.

use bareboat_sessions::{Session, available, workspace_binary};

fn session(page: &str) -> Session {
    Session::new(page)
        .program("proxy-kind", env!("CARGO_BIN_EXE_proxy-kind"))
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .port(6443)
}

#[test]
fn the_readme_is_true() {
    if available("kubectl") && available("python3") {
        session("README.md").port(7443).port(8000).run();
    }
}

#[test]
fn an_informer_of_client_go_follows_the_merged_pods() {
    if available("kubectl") && available("peers") {
        session("informers.md").run();
    }
}
