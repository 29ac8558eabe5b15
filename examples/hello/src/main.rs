//! Foo of hello.zeng.dev in two versions
fn main() {}
