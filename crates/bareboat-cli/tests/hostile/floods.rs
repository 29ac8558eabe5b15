//! Floods of small HTTP/2 frames: each costs its sender nothing, and asks for an answer, a state or some work.
//! CVE-2023-44487, CVE-2023-39325, CVE-2024-27316, CVE-2025-8671.

use crate::client::Caller;
use crate::victim::Victim;
use std::time::{Duration, Instant};

/// How much memory the floods may add, in MiB. A flood is much more than that.
const ALLOWED: u64 = 48;
/// How long one connection after the other sends frames of one type.
const SPAN: Duration = Duration::from_millis(1500);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// A type that no standard defines.
const UNKNOWN: u8 = 0xee;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A literal of HPACK without Huffman coding; shorter than 127 bytes.
fn literal(text: &str) -> Vec<u8> {
    let mut out = vec![u8::try_from(text.len()).unwrap()];
    out.extend(text.as_bytes());
    out
}

/// The block of a request: the method by its index, https, path and authority.
fn request(method: u8) -> Vec<u8> {
    let path = literal("/api/v1/namespaces/default/configmaps");
    let parts: [&[u8]; 5] = [
        &[method, 0x87],
        &[0x04],
        &path,
        &[0x01],
        &literal("localhost"),
    ];
    parts.concat()
}

const GET: u8 = 0x82;
const POST: u8 = 0x83;

/// A flood: frames once at the beginning of a connection, and frames in a loop.
struct Flood {
    name: &'static str,
    opening: Vec<u8>,
    repeated: fn(u32) -> Vec<u8>,
}

fn floods() -> Vec<Flood> {
    let flood = |name, opening, repeated| Flood {
        name,
        opening,
        repeated,
    };
    let post = || frame(HEADERS, END_HEADERS, 1, &request(POST));
    vec![
        flood("PING", vec![], |_| frame(PING, 0, 0, &[7; 8])),
        flood("SETTINGS", vec![], |_| frame(SETTINGS, 0, 0, &[])),
        flood("SETTINGS with a window", vec![], |at| {
            // SETTINGS_INITIAL_WINDOW_SIZE
            let size = (at % 60_000).to_be_bytes();
            frame(SETTINGS, 0, 0, &[&[0, 4][..], &size].concat())
        }),
        flood("PRIORITY", vec![], |at| {
            frame(PRIORITY, 0, 2 * at + 1, &[0, 0, 0, 0, 9])
        }),
        flood(
            "CONTINUATION",
            frame(HEADERS, END_STREAM, 1, &request(GET)),
            |_| {
                let field = [&[0x00][..], &literal("x-more"), &literal("more")].concat();
                frame(CONTINUATION, 0, 1, &field)
            },
        ),
        flood(
            "empty CONTINUATION",
            frame(HEADERS, END_STREAM, 1, &request(GET)),
            |_| frame(CONTINUATION, 0, 1, &[]),
        ),
        flood("WINDOW_UPDATE", vec![], |_| {
            frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])
        }),
        flood("empty DATA", post(), |_| frame(DATA, 0, 1, &[])),
        flood("padding in DATA", post(), |_| {
            frame(DATA, 8, 1, &[&[255][..], &[0; 255]].concat())
        }),
        flood("resets", vec![], |at| {
            let open = frame(HEADERS, END_STREAM | END_HEADERS, 2 * at + 1, &request(GET));
            [open, frame(RST_STREAM, 0, 2 * at + 1, &[0, 0, 0, 8])].concat()
        }),
        flood("resets by the server", vec![], |at| {
            let open = frame(HEADERS, END_STREAM | END_HEADERS, 2 * at + 1, &request(GET));
            // An increment of nothing is an error of the stream.
            [open, frame(WINDOW_UPDATE, 0, 2 * at + 1, &[0; 4])].concat()
        }),
        flood("unknown", vec![], |_| frame(UNKNOWN, 0, 0, &[1, 2, 3])),
    ]
}

/// Sends a flood, on a new connection whenever the server ends one, and reads nothing. Returns how many frames were sent.
fn send(caller: &Caller, flood: &Flood) -> u32 {
    let until = Instant::now() + SPAN;
    let mut sent = 0;
    while Instant::now() < until {
        let Ok(mut connection) = caller.connect() else {
            continue;
        };
        connection.give_up_after(Duration::from_millis(500));
        let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &flood.opening].concat();
        if connection.write(&opening).is_err() {
            continue;
        }
        let mut at = 0;
        // A server that reads no more has stopped the flood as well as one that closes.
        while Instant::now() < until {
            let frames: Vec<u8> = (at..at + 500).flat_map(flood.repeated).collect();
            if connection.write(&frames).is_err() {
                break;
            }
            at += 500;
            sent += 500;
        }
    }
    sent
}

fn flooded_by(who: impl Fn(&Victim) -> Caller) {
    let victim = Victim::start(&[]);
    let caller = who(&victim).speaking("h2");
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            for flood in floods() {
                println!("{}: {} frames", flood.name, send(&caller, &flood));
            }
        });
    });
}

#[test]
fn floods_of_frames_by_strangers() {
    flooded_by(|victim| victim.stranger.clone());
}

#[test]
fn floods_of_frames_by_users() {
    flooded_by(|victim| victim.admin.clone());
}
