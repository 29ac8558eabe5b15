//! Header blocks of other programs are read, and hostile ones refused.

use super::*;
use crate::inflate::Inflater;
use proptest::prelude::*;
use zlib_rs::{Deflate, DeflateFlush};

fn stored(encoder: &mut HeaderEncoder, headers: &Headers) -> BytesMut {
    let mut out = BytesMut::new();
    encoder.put(headers, &mut out);
    out
}

#[test]
fn blocks_of_one_stream_are_read_in_order() {
    let (mut encoder, mut inflater) = (HeaderEncoder::default(), Inflater::new());
    for port in ["80", "8080"] {
        let headers = Headers::of(&[("streamType", "data"), ("port", port)]);
        let block = stored(&mut encoder, &headers);
        let plain = inflater.block(&block).expect("a block");
        let read = Headers::parse(&plain).expect("headers");
        assert_eq!(read.get("streamtype"), Some("data"));
        assert_eq!(read.get("Port"), Some(port));
    }
}

#[test]
fn compressed_blocks_with_the_dictionary_are_read() {
    let mut deflate = Deflate::new(9, true, 15);
    let checksum = deflate
        .set_dictionary(&crate::dictionary::DICTIONARY)
        .expect("a dictionary");
    assert_eq!(checksum, CHECKSUM);
    let mut inflater = Inflater::new();
    for kind in ["error", "stdout"] {
        let headers = Headers::of(&[("streamtype", kind), ("user-agent", "x"), ("a", "")]);
        let mut block = vec![0; 512];
        let before = deflate.total_out();
        deflate
            .compress(&headers.write(), &mut block, DeflateFlush::SyncFlush)
            .expect("it compresses");
        block.truncate((deflate.total_out() - before) as usize);
        let plain = inflater.block(&block).expect("a block");
        assert_eq!(Headers::parse(&plain).expect("headers"), headers);
    }
}

#[test]
fn a_block_that_grows_without_end_is_refused() {
    let mut deflate = Deflate::new(9, true, 15);
    let zeros = vec![0; 1 << 20];
    let mut block = vec![0; 1 << 16];
    deflate
        .compress(&zeros, &mut block, DeflateFlush::SyncFlush)
        .expect("it compresses");
    block.truncate(deflate.total_out() as usize);
    assert!(Inflater::new().block(&block).is_err());
}

#[test]
fn a_block_of_eight_kibibytes_is_read_and_a_longer_one_refused() {
    let block = |value: usize| {
        let headers = Headers::of(&[("n", &"v".repeat(value))]);
        stored(&mut HeaderEncoder::default(), &headers)
    };
    // The number of headers, two lengths and the name.
    let most = 8 * 1024 - 13;
    let plain = Inflater::new().block(&block(most)).expect("a block");
    assert_eq!(plain.len(), 8 * 1024);
    assert!(Headers::parse(&plain).is_ok());
    let refused = Inflater::new().block(&block(most + 1));
    let why = refused.expect_err("it is refused").to_string();
    assert!(why.ends_with("a header block is too long"), "{why}");
}

#[test]
fn a_long_name_with_many_values_is_refused() {
    let block = |name: &str, values: usize| {
        let mut headers = Headers::default();
        for _ in 0..values {
            headers.add(name, "");
        }
        headers.write()
    };
    let long = "n".repeat(LONGEST / 2);
    assert!(Headers::parse(&block(&long, 4)).is_ok());
    for refused in [block(&long, 1000), block("n", LONGEST / 2)] {
        assert!(refused.len() < LONGEST);
        let parsed = Headers::parse(&refused);
        let why = parsed.expect_err("it is refused").to_string();
        assert!(why.ends_with("a header block is too long"), "{why}");
    }
}

proptest! {
    #[test]
    fn headers_come_back(pairs in proptest::collection::vec(("[a-z]{1,8}", "[ -~]{0,40}"), 0..20)) {
        let mut headers = Headers::default();
        for (name, value) in &pairs {
            headers.add(name, value);
        }
        let block = stored(&mut HeaderEncoder::default(), &headers);
        let plain = Inflater::new().block(&block).expect("a block");
        let read = Headers::parse(&plain).expect("headers");
        let sorted = |headers: &Headers| {
            let mut all: Vec<(String, String)> = headers.0.clone();
            // Values of one name keep their order; names may move.
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all
        };
        prop_assert_eq!(sorted(&read), sorted(&headers));
    }

    #[test]
    fn any_bytes_are_headers_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Headers::parse(&bytes);
        let _ = Inflater::new().block(&bytes);
    }
}
