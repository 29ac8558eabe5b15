//! A session over SPDY. A header of each stream contains the role of the stream.

use super::{CREATION, CommandStreams, EndForm, Outcome, PING, Sizes};
use crate::options::CommandOptions;
use bareboat_spdy::{Connection, Incoming, Role, Settings, Stream};
use std::collections::HashMap;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// The versions of the protocol. The first known version that a client offers is used.
pub(super) const PROTOCOLS: [&str; 5] = [
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
];

/// The name of the header with the role of a stream.
pub(crate) const STREAM_TYPE: &str = "streamtype";

/// Calls `run` with the streams that the client opens. After `run` returns, the client has `farewell` to
/// read the remaining output and to close the connection.
pub(super) async fn session<S, F, R>(
    io: S,
    protocol: Option<&'static str>,
    options: CommandOptions,
    farewell: Duration,
    run: F,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    F: FnOnce(CommandStreams) -> R,
    R: Future<Output = Outcome>,
{
    let settings = Settings::default().ping(PING);
    let (connection, incoming, driver) = Connection::new(io, Role::Server, settings);
    let driving = driver.run();
    tokio::pin!(driving);
    let has_status = matches!(protocol, Some("v4.channel.k8s.io" | "v5.channel.k8s.io"));
    let has_resize = has_status || protocol == Some("v3.channel.k8s.io");
    let form = match has_status {
        true => EndForm::Status,
        false => EndForm::Text,
    };
    let end = End {
        connection: &connection,
        form,
        farewell,
    };
    let working = work(incoming, options, has_resize, end, run);
    tokio::select! {
        ended = &mut driving => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a SPDY connection ended early");
            }
        }
        () = working => {
            connection.close();
            // The driver has its own time limit for the last frames.
            let _ = driving.await;
        }
    }
}

/// How a session ends.
struct End<'a> {
    connection: &'a Connection,
    form: EndForm,
    farewell: Duration,
}

async fn work<F, R>(
    mut incoming: Incoming,
    options: CommandOptions,
    has_resize: bool,
    end: End<'_>,
    run: F,
) where
    F: FnOnce(CommandStreams) -> R,
    R: Future<Output = Outcome>,
{
    let mut wanted = vec!["error"];
    let others = [
        ("stdin", options.stdin),
        ("stdout", options.stdout),
        ("stderr", options.stderr),
        ("resize", options.tty && has_resize),
    ];
    wanted.extend(others.iter().filter(|(_, is)| *is).map(|(name, _)| *name));
    let collecting = collect(&mut incoming, &wanted);
    let Ok(Some(mut streams)) = tokio::time::timeout(CREATION, collecting).await else {
        tracing::debug!("a client did not open the streams that it requested");
        return;
    };
    let Some((_, mut error)) = streams.remove("error").map(Stream::split) else {
        return;
    };
    let (resized, resize) = mpsc::channel(4);
    let mut output = |name: &str| {
        let (_, writer) = streams.remove(name)?.split();
        Some(Box::new(writer) as _)
    };
    let (stdout, stderr) = (output("stdout"), output("stderr"));
    let sizes = streams.remove("resize");
    // The reverse direction of stdin stays open: if it ended, clients would assume that the command reads no more
    // input.
    let (stdin, _input_end) = match streams.remove("stdin").map(Stream::split) {
        Some((reader, writer)) => (Some(Box::new(reader) as _), Some(writer)),
        None => (None, None),
    };
    let given = CommandStreams {
        stdin,
        stdout,
        stderr,
        resize,
    };
    let reading_sizes = async {
        if let Some((mut reader, _writer)) = sizes.map(Stream::split) {
            let mut sizes = Sizes::default();
            while let Some(bytes) = reader.next().await {
                for size in sizes.take(&bytes) {
                    let _ = resized.send(size).await;
                }
            }
        }
        std::future::pending::<()>().await;
    };
    // Unexpected streams are dropped, which ends them.
    let refusing = async {
        while incoming.next().await.is_some() {}
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = run(given) => outcome,
        () = reading_sizes => return,
        () = refusing => return,
    };
    // A client that does not read blocks each of these steps.
    let leaving = async {
        let _ = error.send(outcome.message(end.form)).await;
        let _ = error.finish().await;
        end.connection.closed().await;
    };
    let _ = tokio::time::timeout(end.farewell, leaving).await;
}

/// Waits until the client has opened all streams of `wanted`.
async fn collect(incoming: &mut Incoming, wanted: &[&str]) -> Option<HashMap<String, Stream>> {
    let mut streams = HashMap::new();
    while streams.len() < wanted.len() {
        let stream = incoming.next().await?;
        let kind = stream.headers().get(STREAM_TYPE).unwrap_or("").to_owned();
        if wanted.contains(&kind.as_str()) && !streams.contains_key(&kind) {
            streams.insert(kind, stream);
        }
    }
    Some(streams)
}

#[cfg(test)]
mod tests;
