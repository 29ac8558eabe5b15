//! Translates the session of a WebSocket client to the SPDY streams of a kubelet.

use super::connect;
use crate::command::{CommandStreams, FAREWELL, Outcome};
use crate::options::CommandOptions;
use bareboat_api::Status;
use bareboat_spdy::{
    Connection, Headers, Role, Settings, SpdyError, Stream, StreamReader, StreamWriter,
};
use bytes::{Bytes, BytesMut};
use hyper::upgrade::OnUpgrade;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

/// The interval of pings to a kubelet. They keep proxies from closing an idle connection.
const PING: Duration = Duration::from_secs(5);
/// The maximum length of a kubelet's Status.
const LONGEST_STATUS: usize = 64 * 1024;

/// Runs a session, and returns the Status that the kubelet sent.
pub(super) async fn run(
    connection: OnUpgrade,
    options: CommandOptions,
    streams: CommandStreams,
) -> Outcome {
    match connect::take(connection).await {
        Some(io) => over(io, options, streams, FAREWELL).await,
        None => lost(),
    }
}

fn lost() -> Outcome {
    let status = Status::internal("the connection to the kubelet ended before the command");
    Outcome::Failed(Box::new(status))
}

/// Runs a session over a connection. After the session ends, the client has `farewell` to read the remaining output.
async fn over<S>(
    io: S,
    options: CommandOptions,
    streams: CommandStreams,
    farewell: Duration,
) -> Outcome
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let settings = Settings::default().ping(PING);
    let (connection, _incoming, driver) = Connection::new(io, Role::Client, settings);
    let driving = driver.run();
    tokio::pin!(driving);
    let relaying = relay(&connection, options, streams);
    tokio::pin!(relaying);
    let relayed = tokio::select! {
        relayed = &mut relaying => relayed,
        ended = &mut driving => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection to a kubelet ended early");
            }
            // Data that has already arrived is still passed on.
            match tokio::time::timeout(farewell, relaying).await {
                Ok(relayed) => relayed,
                Err(_) => Err(SpdyError::Timeout),
            }
        }
    };
    match relayed {
        Ok(status) if status.is_empty() => lost(),
        Ok(status) => Outcome::Kubelet(status),
        Err(error) => Outcome::Failed(Box::new(Status::internal(error))),
    }
}

async fn open(connection: &Connection, kind: &str) -> Result<Stream, SpdyError> {
    connection.open(Headers::of(&[("streamType", kind)])).await
}

async fn relay(
    connection: &Connection,
    options: CommandOptions,
    mut streams: CommandStreams,
) -> Result<Bytes, SpdyError> {
    let (error, _error) = open(connection, "error").await?.split();
    let stdin = match streams.stdin.take() {
        Some(input) => Some((input, open(connection, "stdin").await?.split())),
        None => None,
    };
    let stdout = match streams.stdout.take() {
        Some(output) => Some((output, open(connection, "stdout").await?.split())),
        None => None,
    };
    let stderr = match streams.stderr.take() {
        Some(output) => Some((output, open(connection, "stderr").await?.split())),
        None => None,
    };
    let resize = match options.tty {
        true => Some(open(connection, "resize").await?.split()),
        false => None,
    };
    let typing = async {
        if let Some((mut input, (_, mut writer))) = stdin {
            let _ = tokio::io::copy(&mut input, &mut writer).await;
            let _ = writer.finish().await;
        }
        std::future::pending::<()>().await;
    };
    let resizing = async {
        if let Some((_reader, mut writer)) = resize {
            while let Some(size) = streams.resize.recv().await {
                if writer.send(size.json().into()).await.is_err() {
                    break;
                }
            }
        }
        std::future::pending::<()>().await;
    };
    let reading = async {
        let (_, _, status) = tokio::join!(copy(stdout), copy(stderr), read_all(error));
        status
    };
    tokio::select! {
        status = reading => Ok(status),
        () = typing => Ok(Bytes::new()),
        () = resizing => Ok(Bytes::new()),
    }
}

async fn copy(from_to: Option<(crate::Output, (StreamReader, StreamWriter))>) {
    let Some((mut output, (mut reader, _writer))) = from_to else {
        return;
    };
    while let Some(bytes) = reader.next().await {
        if output.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read_all(mut reader: StreamReader) -> Bytes {
    let mut all = BytesMut::new();
    while let Some(bytes) = reader.next().await {
        if all.len() + bytes.len() <= LONGEST_STATUS {
            all.extend_from_slice(&bytes);
        }
    }
    all.freeze()
}

#[cfg(test)]
mod tests;
