//! Runs the shell sessions of a Markdown page, so that a README or a chapter of the book is a test.
//!
//! ```no_run
//! use bareboat_sessions::Session;
//!
//! # fn binary() -> &'static str { "" }
//! // In a test of the crate `blog`, `binary()` is `env!("CARGO_BIN_EXE_blog")`.
//! Session::new("README.md")
//!     .program("blog", binary())
//!     .port(8443)
//!     .run();
//! ```
//!
//! # What a page looks like
//!
//! The page is the session: all its blocks run in order, in one bash. Variables, functions, `cd` and background jobs stay for
//! the blocks that follow. The first word after the backticks is the language, further words say how to run a block.
//!
//! | block | meaning |
//! |---|---|
//! | `bash`, `sh` | commands. All of them must succeed |
//! | `text` | the expected output of the commands before it, stdout and stderr together. A heading ends the association |
//! | `console` | commands after `$ `, continued by lines with `> `, each followed by its expected output |
//! | any other | not run |
//!
//! | word | meaning |
//! |---|---|
//! | `fails` | the last command must fail |
//! | `eventually` | the block is repeated until it succeeds and prints what is expected, for a minute at most |
//! | `background` | the block keeps running, as in another terminal. The lines of the expected output must appear before the session goes on. At the end of the session it gets SIGINT and must exit with 0 |
//! | `skip=REASON` | not run; [`Report::skipped`] names it. The reason extends to the end of the line |
//! | `file=NAME` | on any language: the text of the block is written to this file |
//!
//! Expected output is compared line by line. Runs of spaces are equal to one space, `…` stands for any text within a line, a line
//! with only `…` for any number of lines, and a duration such as `5s` or `2m10s` is equal to every other duration.
//!
//! # Where it runs
//!
//! The folder of the session is temporary and is also its HOME. Folders of the repository such as `examples` are linked into it, so
//! that relative paths are those of a checkout. `cargo run -p NAME` runs the binary given by [`Session::program`], without
//! cargo. kubectl and other clients are found in `.cache/peers`, if it exists.

mod compare;
mod page;
mod port;
mod session;
mod shell;
mod tools;

pub use port::Port;
pub use session::{Failure, Report, Session, Skipped};
pub use tools::{available, workspace_binary};
