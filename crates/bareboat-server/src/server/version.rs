//! The version of the server, as clients read it.

use bareboat_api::Value;

/// Returns the answer of `/version`: the Kubernetes version of this API, as clients parse it.
pub fn current() -> Value {
    bareboat_api::value!({
        "major": "1",
        "minor": "36",
        "gitVersion": (concat!("v1.36.4+bareboat-", env!("CARGO_PKG_VERSION"))),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": (format!("{}/{}", std::env::consts::OS, go_architecture())),
    })
}

/// Returns Go's name of the architecture, which clients expect.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
