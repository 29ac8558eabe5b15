//! Pages of code and constants that only the start of a program needs.
//!
//! The system maps a program page by page as it runs, many pages around each that is needed, and counts all of them as
//! memory of the process. Nothing unmaps them later unless memory is short.

#[cfg(target_os = "linux")]
mod linux;

/// Unmaps the pages of the program's code and constants, and returns how many bytes of addresses they have. Pages that are
/// needed again are mapped again, a microsecond each, as long as the system caches the file of the program.
///
/// Call it once the start is over. Elsewhere than on Linux it does nothing and returns 0.
///
/// ```
/// bareboat_process::release_code();
/// ```
pub fn release_code() -> usize {
    #[cfg(target_os = "linux")]
    return linux::release_code();
    #[cfg(not(target_os = "linux"))]
    return 0;
}
