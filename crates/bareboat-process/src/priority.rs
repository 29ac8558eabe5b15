//! Threads that leave the processor to others.
//!
//! A thread with a higher niceness gets a smaller share of the processor. That alone does not make it leave the processor
//! quickly: since version 6.6, Linux lets a thread finish its time slice when another one wakes up, which takes up to a tick
//! of 4 ms. Since 6.12, a thread that wakes up preempts at once a thread whose slice is longer than its own. So a polite
//! thread asks for a long slice.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::Polite;

/// How threads for work in the background run. On this system they run as all others.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy, Debug)]
pub struct Polite;

#[cfg(not(target_os = "linux"))]
impl Polite {
    /// Nothing can be set here: on this system the niceness is that of the process.
    pub fn nicer_by(_steps: i32) -> Option<Polite> {
        None
    }

    /// Does nothing.
    pub fn apply(self) -> std::io::Result<()> {
        Ok(())
    }
}
