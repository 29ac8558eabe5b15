//! The streaming subresources of built-in kinds: `pods/exec`, `attach`, `log`, `portforward`, `proxy`, `services/proxy`
//! and `nodes/proxy`.
//!
//! They are served by functions of a program ([`exec`], [`attach`], [`logs`], [`port_forward`]), which see plain streams,
//! or by kubelets ([`Kubelets`]), found through Node objects as kube-apiserver finds them. SPDY and WebSockets end here;
//! for kubelets, WebSockets are translated to SPDY, and SPDY passes through.

mod annotation;
mod command;
mod handlers;
mod kubelet;
mod logs;
mod objects;
mod options;
mod ports;
mod proxies;
mod upgrade;
mod websocket;

pub use annotation::{KUBELET_URL, KubeletUrl};
pub use command::{CommandStreams, Input, Output, TerminalSize};
pub use handlers::{
    CommandRequest, LogRequest, LogWriter, PortRequest, attach, exec, log_body, logs, port_forward,
};
pub use kubelet::{KubeletSettings, Kubelets};
pub use options::{CommandOptions, LogOptions};
pub use ports::PortStream;

pub use bareboat_server::{Connector, UpstreamTrust};

/// The subresources that this crate serves: group, plural and name.
pub const SUBRESOURCES: [(&str, &str, &str); 7] = [
    ("", "pods", "attach"),
    ("", "pods", "exec"),
    ("", "pods", "log"),
    ("", "pods", "portforward"),
    ("", "pods", "proxy"),
    ("", "services", "proxy"),
    ("", "nodes", "proxy"),
];
