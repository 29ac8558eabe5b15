//! The streams of pods: logs, exec, attach and port-forward.

use crate::node::Processes;
use bareboat::prelude::*;
use bareboat::streams;
use std::process::Command;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

/// `kubectl logs`.
pub(crate) fn logs(processes: &Processes) -> Connector {
    let processes = processes.clone();
    streams::logs(move |request| {
        let process = processes.find(request.pod.uid());
        let body = process.and_then(|process| match request.options.previous {
            true => Err(Status::bad_request(
                "a process runs once: there is no previous log",
            )),
            false => Ok(process.log().read(&request.options)),
        });
        std::future::ready(body)
    })
}

/// `kubectl exec` and `kubectl cp`: a command in the folder of the pod.
pub(crate) fn exec(processes: &Processes) -> Connector {
    let processes = processes.clone();
    streams::exec(move |request, streams| {
        let (processes, uid) = (processes.clone(), request.pod.uid().to_owned());
        async move {
            let words = &request.options.command;
            let mut command = match request.options.tty {
                true => with_terminal(words),
                false => Command::new(words.first().map_or("", String::as_str)),
            };
            if !request.options.tty {
                command.args(words.iter().skip(1));
            }
            command.current_dir(processes.folder(&uid));
            command.env("POD_PID", processes.find(&uid)?.id().to_string());
            streams::run(command, streams).await
        }
    })
}

/// The program `script` of util-linux provides a terminal.
fn with_terminal(words: &[String]) -> Command {
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    let mut command = Command::new("script");
    command.args(["-qec", &quoted.collect::<Vec<_>>().join(" "), "/dev/null"]);
    command
}

/// `kubectl attach`: the output from now on, and the input of the process.
pub(crate) fn attach(processes: &Processes) -> Connector {
    let processes = processes.clone();
    streams::attach(move |request, streams| {
        let process = processes.find(request.pod.uid());
        async move {
            let container = request.pod.at(&["spec", "containers"]);
            let container = container.and_then(|all| all.as_array()?.first()?.get("stdinOnce"));
            let once = container.and_then(Value::as_bool).unwrap_or(false);
            let process = process?;
            process.attach(streams.stdin, streams.stdout, once).await;
            Ok(process.ended().await)
        }
    })
}

/// `kubectl port-forward`: a port of this machine.
pub(crate) fn port_forward() -> Connector {
    streams::port_forward(|request, mut stream| async move {
        let connection = TcpStream::connect(("127.0.0.1", request.port)).await;
        let mut connection = connection.map_err(|error| error.to_string())?;
        let copied = copy_bidirectional(&mut stream, &mut connection).await;
        copied.map(drop).map_err(|error| error.to_string())
    })
}
