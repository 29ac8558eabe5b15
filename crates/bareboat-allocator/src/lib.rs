//! The memory allocator of the binary, and the one call to it that Rust's interface lacks.
//!
//! mimalloc returns freed memory to the system a second after it was freed, but only while some thread allocates. A
//! server that becomes idle right after a peak would keep that memory until its next request. A program therefore calls
//! [`release_freed_memory`] now and then.

/// The allocator of each program that links this crate. It is here and not in the binary, whose own code is not optimised
/// in a release build.
///
/// Programs that count instructions, such as callgrind, need the system's allocator: CONTRIBUTING.md shows how.
#[cfg(not(system_allocator))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory of the whole process to the system now. Takes about as long as the system needs to unmap it,
/// so callers that must not block use a thread of their own.
pub fn release_freed_memory() {
    // SAFETY: the function takes no pointer. It works on the heap of the calling thread, and on regions that no heap
    // uses, under the allocator's own lock.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_kib() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    #[test]
    fn memory_freed_by_another_thread_is_returned() {
        let Some(before) = resident_kib() else {
            println!("skipped: this system does not report the memory of a process");
            return;
        };
        let peak = std::thread::spawn(|| {
            let blocks: Vec<Vec<u8>> = (0..128).map(|_| vec![1; 512 << 10]).collect();
            let peak = resident_kib();
            drop(blocks);
            peak
        });
        let peak = peak.join().expect("the thread ends").expect("as before");
        assert!(peak > before + (60 << 10), "{before} KiB, then {peak} KiB");
        release_freed_memory();
        let after = resident_kib().expect("as before");
        assert!(after < before + (8 << 10), "{before} KiB, then {after} KiB");
    }
}
