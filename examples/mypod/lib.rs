//! The server is `main.go`. This crate runs the session of its README as a test.
