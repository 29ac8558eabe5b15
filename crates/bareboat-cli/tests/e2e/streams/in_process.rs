//! Streams by functions of a program: exec runs local processes, attach echoes, ports lead to this machine.

use super::checks::streams_work;
use super::{Client, run_pod};
use bareboat::api::admission::{Lookup, Operation, Review, Validator};
use bareboat::api::kind::BoxFuture;
use bareboat::control_plane::{ControlPlane as _, Settings, start};
use bareboat::prelude::*;
use bareboat::streams::{self, CommandRequest, CommandStreams};
use std::io::Write as _;
use std::process::{Command, Stdio};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// Runs a local process. The command `terminal-size` prints the size of the client's terminal.
async fn exec(request: CommandRequest, mut streams: CommandStreams) -> Result<i32, Status> {
    let command = &request.options.command;
    if command[0] == "terminal-size" {
        let size = streams.resize.recv().await;
        let size = size.ok_or_else(|| Status::internal("no terminal"))?;
        if let Some(mut stdout) = streams.stdout {
            let text = format!("{}x{}\r\n", size.width, size.height);
            let _ = stdout.write_all(text.as_bytes()).await;
        }
        return Ok(0);
    }
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Status::internal)?;
    let mut stdin = child.stdin.take().unwrap();
    let (typed, mut typing) = mpsc::channel::<Vec<u8>>(1);
    std::thread::spawn(move || {
        while let Some(bytes) = typing.blocking_recv() {
            if stdin.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    let reading = async {
        if let Some(mut input) = streams.stdin {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(count @ 1..) = input.read(&mut buffer).await {
                if typed.send(buffer[..count].to_vec()).await.is_err() {
                    break;
                }
            }
        }
        drop(typed);
        std::future::pending::<()>().await;
    };
    let stdout = copy(child.stdout.take().unwrap(), streams.stdout);
    let stderr = copy(child.stderr.take().unwrap(), streams.stderr);
    tokio::select! {
        () = reading => {}
        _ = async { tokio::join!(stdout, stderr) } => {}
    }
    let status = tokio::task::spawn_blocking(move || child.wait()).await;
    let status = status
        .map_err(Status::internal)?
        .map_err(Status::internal)?;
    Ok(status.code().unwrap_or(137))
}

/// Copies the output of a process to the client.
async fn copy(mut from: impl std::io::Read + Send + 'static, to: Option<streams::Output>) {
    let (pieces, mut output) = mpsc::channel::<Vec<u8>>(1);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from.by_ref().read(&mut buffer) {
            if pieces.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let Some(mut to) = to else { return };
    while let Some(bytes) = output.recv().await {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn attach(request: CommandRequest, streams: CommandStreams) -> Result<i32, Status> {
    let (Some(mut stdin), Some(mut stdout)) = (streams.stdin, streams.stdout) else {
        return Err(Status::bad_request("attach needs input and output"));
    };
    let greeting = format!("attached to {}\n", request.options.container);
    let _ = stdout.write_all(greeting.as_bytes()).await;
    let _ = tokio::io::copy(&mut stdin, &mut stdout).await;
    Ok(0)
}

/// Refuses one command, by the options of the connection.
struct NoForbiddenTool;

impl Validator for NoForbiddenTool {
    fn name(&self) -> &'static str {
        "NoForbiddenTool"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let command = review
            .object
            .as_deref()
            .and_then(|object| object.value().at(&["command"]));
        let command = command.and_then(|command| command.as_array()?.first()?.as_str());
        let connects = review.operation == Operation::Connect && review.subresource == "exec";
        Box::pin(std::future::ready(match command {
            Some("forbidden-tool") if connects => {
                Err(Status::bad_request("this tool is forbidden"))
            }
            _ => Ok(()),
        }))
    }
}

fn settings() -> Settings {
    let ports = streams::port_forward(|request, mut stream| async move {
        let connected = tokio::net::TcpStream::connect(("127.0.0.1", request.port)).await;
        let mut connection = connected.map_err(|error| error.to_string())?;
        let copied = tokio::io::copy_bidirectional(&mut stream, &mut connection).await;
        copied.map(drop).map_err(|error| error.to_string())
    });
    let logs = streams::logs(|request| async move {
        let (writer, body) = streams::log_body();
        tokio::spawn(async move {
            writer
                .write(format!("log of {}\n", request.pod.name()))
                .await;
            for line in 1..=3 {
                writer.write(format!("line {line}\n")).await;
            }
        });
        Ok(body)
    });
    Settings::default()
        .stream("pods", "exec", streams::exec(exec))
        .stream("pods", "attach", streams::attach(attach))
        .stream("pods", "portforward", ports)
        .stream("pods", "log", logs)
}

#[test]
fn functions_serve_streams_over_websockets_and_spdy() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, address) = runtime.block_on(async {
        let server = Server::builder()
            .control_plane_with(&settings())
            .validator(NoForbiddenTool)
            .authenticator(Anonymous)
            .authorizer(AllowAll)
            .build()
            .unwrap();
        Box::leak(Box::new(start(&server).await));
        let address = server.listen("127.0.0.1:0".parse().unwrap(), None).await;
        (server, address.unwrap())
    });
    let home = tempfile::tempdir().unwrap();
    let flags = vec![format!("--server=http://{address}")];
    let kubeconfig = home.path().join("none");
    let Some(mut client) = Client::new(flags, kubeconfig, home.path().to_owned()) else {
        return;
    };
    run_pod(&client, "web", "");
    streams_work(&client);
    client.websockets = false;
    streams_work(&client);
    assert_eq!(
        client.gives("logs -f web", ""),
        "log of web\nline 1\nline 2\nline 3\n"
    );
    client.refuses(
        "exec web -c nope -- true",
        "container nope is not valid for pod web",
    );
    client.refuses("exec web -- forbidden-tool", "this tool is forbidden");
    client.refuses("exec web -- /no/such/program", "No such file");
    runtime.block_on(server.shut_down());
}
