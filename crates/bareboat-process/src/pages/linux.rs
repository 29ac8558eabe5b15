//! The segments of the running program on Linux.

use libc::{PF_W, PT_LOAD, c_int, c_void, dl_phdr_info};
use std::ops::Range;

/// Unmaps the pages of all segments of the program that cannot be written, and returns their size.
pub(super) fn release_code() -> usize {
    let page = rustix::param::page_size();
    let mut released = 0;
    for segment in constant_segments() {
        // Only whole pages of the segment.
        let (start, end) = (
            segment.start.next_multiple_of(page),
            segment.end / page * page,
        );
        // SAFETY: the range is inside a segment of the running program, which is mapped for as long as the process runs. The
        // segment is read-only, so each page has the content of the program's file, and is mapped from it again when it is
        // used. That would not hold for code that the loader changes (text relocations), which Rust's linkers refuse to make.
        #[allow(unsafe_code)]
        let done = start < end
            && unsafe { libc::madvise(start as *mut c_void, end - start, libc::MADV_DONTNEED) }
                == 0;
        if done {
            released += end - start;
        }
    }
    released
}

/// Returns the addresses of the segments of the program, without those of its libraries, that are never written. Segments
/// that the loader writes and then protects are not among them: they are marked as writable.
fn constant_segments() -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    // SAFETY: `visit` has the right type, and `found` lives until the call returns.
    #[allow(unsafe_code)]
    unsafe {
        libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast());
    }
    found
}

/// Collects the segments of the first object, which is the program itself.
#[allow(unsafe_code)]
unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description, with as many headers as it says. `found` comes from `constant_segments`.
    let (base, headers, found) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (
            info.dlpi_addr as usize,
            headers,
            &mut *found.cast::<Vec<Range<usize>>>(),
        )
    };
    for header in headers {
        if header.p_type == PT_LOAD && header.p_flags & PF_W == 0 {
            let start = base + header.p_vaddr as usize;
            found.push(start..start + header.p_filesz as usize);
        }
    }
    // Libraries follow; some may be unloaded at any time.
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages of segments that are mapped, in KiB. They are counted one by one: the sum for the process lags behind.
    fn mapped(segments: &[Range<usize>]) -> Option<u64> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let (mut sum, mut counts) = (0, false);
        for line in maps.lines() {
            let first = line.split_whitespace().next()?;
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            if let Some((start, end)) = first.split_once('-')
                && let (Some(start), Some(end)) = (number(start), number(end))
            {
                let within = |segment: &Range<usize>| segment.start < end && start < segment.end;
                counts = segments.iter().any(within);
            } else if counts && first == "Rss:" {
                sum += line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
            }
        }
        Some(sum)
    }

    #[test]
    fn code_is_unmapped_and_goes_on_running() {
        let segments = constant_segments();
        assert!(!segments.is_empty());
        // This code is in one of them.
        let here = code_is_unmapped_and_goes_on_running as fn() as usize;
        assert!(
            segments.iter().any(|segment| segment.contains(&here)),
            "{segments:x?}"
        );
        // Map all of it. Each page has a byte at least.
        let touched: u64 = (segments.iter().cloned().flatten().step_by(4096))
            .map(|address| {
                // SAFETY: the address is in a segment that can be read.
                #[allow(unsafe_code)]
                u64::from(unsafe { std::ptr::read_volatile(address as *const u8) })
            })
            .sum();
        let before = mapped(&segments);
        assert!(release_code() > 0);
        let after = mapped(&segments);
        println!("{touched}: {before:?}, then {after:?} KiB");
        if let (Some(before), Some(after)) = (before, after) {
            assert!(after < before, "{before} KiB, then {after} KiB");
        }
        assert_eq!(constant_segments().len(), segments.len());
    }
}
