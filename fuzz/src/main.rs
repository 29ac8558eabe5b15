//! One program for all targets: libFuzzer makes the inputs, the variable `FUZZ_TARGET` names the target.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::LazyLock;

static TARGET: LazyLock<String> = LazyLock::new(|| {
    std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names the target")
});

fuzz_target!(|input: &[u8]| -> Corpus {
    // What is refused may still lead somewhere new, so it is kept as well.
    bareboat_fuzz::run(&TARGET, input);
    Corpus::Keep
});
