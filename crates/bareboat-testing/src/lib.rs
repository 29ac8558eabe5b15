//! A whole API server inside your test
