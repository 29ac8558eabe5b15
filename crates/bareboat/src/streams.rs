//! The streaming subresources of pods, nodes and services: functions that serve them, and kubelets.

pub use bareboat_streams::{
    CommandOptions, CommandRequest, CommandStreams, Connector, Input, KUBELET_URL, KubeletSettings,
    KubeletUrl, Kubelets, LogBuffer, LogOptions, LogRequest, LogWriter, Output, PortRequest,
    PortStream, SUBRESOURCES, TerminalSize, UpstreamTrust, attach, exec, log_body, logs,
    port_forward, websocket,
};
#[cfg(unix)]
pub use bareboat_streams::{Process, run};
