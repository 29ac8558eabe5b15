//! Fuzz targets: functions that feed any bytes to a reader and check what comes out.
//!
//! A target panics when a rule is broken. Two drivers run them: the binary of this crate, which mutates seeds on a stable
//! compiler, and `fuzz/`, which is guided by coverage and needs instrumentation.

pub mod mutate;
mod targets;

/// A fuzz target: its name, and a function that feeds bytes to one parser and panics if a rule is broken.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target and of the folder of its seeds.
    pub name: &'static str,
    /// Reads an input. Returns whether the input was accepted; such inputs are worth mutating further.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("json", targets::text::json),
    target("yaml", targets::text::yaml),
    target("protobuf", targets::protobuf::run),
    target("patch", targets::patch::run),
    target("selector", targets::selector::run),
    target("token", targets::http::token),
    target("http", targets::http::request),
    target("spdy", targets::spdy::run),
    target("cel", targets::cel::run),
    target("schema", targets::schema::run),
    target("definition", targets::definition::run),
];

const fn target(name: &'static str, run: fn(&[u8]) -> bool) -> Target {
    Target { name, run }
}

/// Runs the target of that name, for drivers that have one program a target.
///
/// # Panics
///
/// When there is no such target, or when it finds something.
pub fn run(name: &str, input: &[u8]) -> bool {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of that name").run)(input)
}

#[cfg(test)]
mod tests;
