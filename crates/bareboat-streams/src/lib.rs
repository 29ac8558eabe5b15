//! The streaming subresources of built-in kinds: `pods/exec`, `attach`, `log`, `portforward`, `proxy`, `services/proxy`
//! and `nodes/proxy`.
//!
//! These subresources are served by functions of a program ([`exec`], [`attach`], [`logs`], [`port_forward`]), which
//! receive plain streams, or by kubelets ([`Kubelets`]), which are found through Node objects as in kube-apiserver. For
//! functions, this crate terminates SPDY and WebSockets. For kubelets, it translates WebSockets to SPDY, and passes
//! SPDY through.
//!
//! A pod whose only command is `echo`:
//!
//! ```
//! use bareboat_api::Status;
//! use bareboat_streams::exec;
//! use tokio::io::AsyncWriteExt as _;
//!
//! let echo = exec(|request, streams| async move {
//!     let [name, words @ ..] = &request.options.command[..] else {
//!         return Err(Status::bad_request("there is no command"));
//!     };
//!     if name != "echo" {
//!         return Ok(127);
//!     }
//!     if let Some(mut stdout) = streams.stdout {
//!         // A client that has left needs no answer.
//!         let _ = stdout.write_all(words.join(" ").as_bytes()).await;
//!     }
//!     Ok(0)
//! });
//! # let _ = echo;
//! ```
//!
//! `Settings::stream` of the crate `bareboat` puts it in the place of `pods/exec`.

mod annotation;
mod command;
mod handlers;
mod kubelet;
mod log_buffer;
mod logs;
mod objects;
mod options;
mod plain;
mod ports;
#[cfg(unix)]
mod process;
mod proxies;
mod upgrade;
mod websocket;

pub use annotation::{KUBELET_URL, KubeletUrl};
pub use command::{CommandStreams, Input, Output, TerminalSize};
pub use handlers::{
    CommandRequest, LogRequest, LogWriter, PortRequest, attach, exec, log_body, logs, port_forward,
};
pub use kubelet::{KubeletSettings, Kubelets};
pub use log_buffer::LogBuffer;
pub use options::{CommandOptions, LogOptions};
pub use plain::websocket;
pub use ports::PortStream;
#[cfg(unix)]
pub use process::{Process, run};

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
