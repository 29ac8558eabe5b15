//! The binary: bareboat serve
fn main() {}
