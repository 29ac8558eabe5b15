//! Helpers to send requests to a test server and inspect responses.

use bareboat::server::reply::Body;
use bareboat_testing::TestServer;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
pub(crate) use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A response.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    /// Returns the response if it has this code, else fails.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Answer {
        assert_eq!(self.code, code, "{}", self.text());
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.bytes) {
            Ok(value) => value,
            Err(error) => panic!("no JSON ({error}): {}", self.text()),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }

    /// Returns code, reason and message of a Status.
    #[track_caller]
    pub(crate) fn status(&self) -> (u16, String, String) {
        let body = self.json();
        assert_eq!(body["kind"], "Status", "{body}");
        assert_eq!(body["apiVersion"], "v1");
        assert_eq!(body["code"], self.code, "{body}");
        let text = |key: &str| body[key].as_str().unwrap_or("").to_owned();
        (self.code, text("reason"), text("message"))
    }

    /// Returns the resourceVersion of the object or list.
    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        version(&self.json())
    }

    /// Returns the names of the items of a list.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        let body = self.json();
        let items = body["items"].as_array().expect("a list");
        items.iter().map(name).collect()
    }
}

/// Returns the resourceVersion of an object or list.
#[track_caller]
pub(crate) fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    match text.and_then(|text| text.parse().ok()) {
        Some(version) => version,
        None => panic!("no resourceVersion: {object}"),
    }
}

/// Returns the name of an object.
pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or("").to_owned()
}

/// Returns a small ConfigMap.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// Reads a whole response.
pub(crate) async fn read<B>(response: http::Response<B>) -> Answer
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (head, body) = response.into_parts();
    let bytes = soon(body.collect()).await.expect("a body that ends well");
    Answer {
        code: head.status.as_u16(),
        headers: head.headers,
        bytes: bytes.to_bytes(),
    }
}

/// Fails instead of hanging. The limit is long, because a busy machine may be slow.
#[track_caller]
pub(crate) fn soon<T>(what: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(Duration::from_secs(300), what).await {
            Ok(done) => done,
            Err(_) => panic!("nothing happened for five minutes at {place}"),
        }
    }
}

/// Builds a request with headers.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> http::Request<Bytes> {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).expect("a well-formed request")
}

/// Requests of tests, as the administrator and without a socket.
pub(crate) trait Requests {
    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer;

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], Bytes::new()).await
    }
    async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], Bytes::new())
            .await
    }
    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], body.to_string()).await
    }
    async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[], body.to_string()).await
    }
    async fn patch(&self, path: &str, media: &str, body: &Value) -> Answer {
        self.send("PATCH", path, &[("content-type", media)], body.to_string())
            .await
    }
    async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], Bytes::new()).await
    }
    async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.send("DELETE", path, &[], options.to_string()).await
    }
    /// Starts a watch.
    async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }
    async fn watch_as(&self, path: &str, accept: &str) -> Watch;
}

impl Requests for TestServer {
    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        read(self.call(request(method, path, headers, body)).await).await
    }

    async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let response = self
            .call(request("GET", path, &[("accept", accept)], Bytes::new()))
            .await;
        if response.status() != 200 {
            panic!("{path}: {}", read(response).await.text());
        }
        Watching::new(response)
    }
}

/// A running watch of an in-process call.
pub(crate) type Watch = Watching<Body>;

/// A running watch.
pub(crate) struct Watching<B> {
    pub(crate) headers: HeaderMap,
    body: B,
    buffer: BytesMut,
}

impl<B> Watching<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Debug,
{
    pub(crate) fn new(response: http::Response<B>) -> Watching<B> {
        let (head, body) = response.into_parts();
        Watching {
            headers: head.headers,
            body,
            buffer: BytesMut::new(),
        }
    }

    /// Reads more bytes; returns false at the end.
    async fn more(&mut self) -> bool {
        match soon(self.body.frame()).await {
            None => false,
            Some(frame) => {
                let frame = frame.expect("a frame");
                self.buffer
                    .extend_from_slice(frame.data_ref().expect("data"));
                true
            }
        }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Some(serde_json::from_slice(&line).expect("an event in JSON"));
            }
            if !self.more().await {
                assert!(self.buffer.is_empty(), "the stream ended inside an event");
                return None;
            }
        }
    }

    /// Returns the next frame of a protobuf watch, without its length.
    pub(crate) async fn next_frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<4>() {
                let length = u32::from_be_bytes(*head) as usize;
                if self.buffer.len() >= 4 + length {
                    let frame = self.buffer.split_to(4 + length).freeze();
                    return Some(frame.slice(4..));
                }
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Returns the next event as `TYPE name`.
    pub(crate) async fn brief(&mut self) -> String {
        match self.next().await {
            None => "END".to_owned(),
            Some(event) => format!("{} {}", text(&event["type"]), name(&event["object"])),
        }
    }

    /// Returns all events up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// Returns the string of a JSON value.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Percent-encodes characters that a query may not contain.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte as char);
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A minimal protobuf codec, independent of the server's.
pub(crate) mod proto {
    /// Encodes a length-delimited field.
    pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(bytes);
        out
    }

    /// Encodes a message in Kubernetes' envelope.
    pub(crate) fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    /// Returns the first length-delimited field with a number.
    pub(crate) fn get(message: &[u8], number: u64) -> Option<&[u8]> {
        let mut rest = message;
        while !rest.is_empty() {
            let tag = varint(&mut rest)?;
            match tag & 7 {
                0 => {
                    varint(&mut rest)?;
                }
                1 => rest = rest.get(8..)?,
                5 => rest = rest.get(4..)?,
                2 => {
                    let length = varint(&mut rest)? as usize;
                    let bytes = rest.get(..length)?;
                    if tag >> 3 == number {
                        return Some(bytes);
                    }
                    rest = &rest[length..];
                }
                _ => return None,
            }
        }
        None
    }

    /// Returns the kind and the message in an envelope.
    pub(crate) fn open(bytes: &[u8]) -> (String, &[u8]) {
        let unknown = bytes.strip_prefix(b"k8s\0").expect("an envelope");
        let kind = get(get(unknown, 1).expect("a type"), 2).expect("a kind");
        let kind = String::from_utf8(kind.to_vec()).expect("text");
        (kind, get(unknown, 2).unwrap_or_default())
    }

    fn varint(rest: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, after) = rest.split_first()?;
            *rest = after;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Returns a ConfigMap with the data `a: b`.
    pub(crate) fn config_map(name: &str) -> Vec<u8> {
        let pair = [field(1, b"a"), field(2, b"b")].concat();
        let raw = [field(1, &field(1, name.as_bytes())), field(2, &pair)].concat();
        envelope("v1", "ConfigMap", &raw)
    }
}
