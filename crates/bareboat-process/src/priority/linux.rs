//! Niceness and time slice of the current thread on Linux.

use std::io;

/// The lowest priority there is.
const LOWEST: i32 = 19;
/// The slice of a polite thread, in nanoseconds. Others have a few milliseconds; the system's maximum is 100 ms.
const SLICE: u64 = 20_000_000;
/// The policy stays as it is.
const KEEP_POLICY: u64 = 0x08;

/// How threads for work in the background run.
#[derive(Clone, Copy, Debug)]
pub struct Polite {
    niceness: i32,
}

impl Polite {
    /// Threads nicer than the current one by some steps; `None` if its niceness is not known.
    ///
    /// A thread inherits the niceness of the thread that starts it, so decide once for all threads of a pool.
    pub fn nicer_by(steps: i32) -> Option<Polite> {
        let own = rustix::process::getpriority_process(None).ok()?;
        let niceness = own.saturating_add(steps).min(LOWEST);
        Some(Polite { niceness })
    }

    /// Applies to the current thread. A system that refuses the slice changes the niceness alone.
    pub fn apply(self) -> io::Result<()> {
        if set_attributes(self.niceness, SLICE).is_err() {
            rustix::process::setpriority_process(None, self.niceness)?;
        }
        Ok(())
    }
}

/// The parameter of `sched_setattr`, in its first form.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice of threads without a deadline; systems before 6.12 ignore it.
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn set_attributes(nice: i32, runtime: u64) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: KEEP_POLICY,
        nice,
        priority: 0,
        runtime,
        deadline: 0,
        period: 0,
    };
    let this_thread: libc::pid_t = 0;
    let no_flags: libc::c_uint = 0;
    // SAFETY: the system reads `size` bytes of the structure, which lives until the call returns, and writes nothing.
    #[allow(unsafe_code)]
    let result = unsafe {
        let pointer: *const Attributes = &raw const attributes;
        libc::syscall(libc::SYS_sched_setattr, this_thread, pointer, no_flags)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_thread_that_applies_it_is_nicer() {
        let before = getpriority_process(None).expect("it is known");
        let polite = Polite::nicer_by(3).expect("as before");
        let nicer = std::thread::spawn(move || {
            polite.apply().expect("it may be nicer");
            let slice = std::fs::read_to_string("/proc/thread-self/sched");
            (getpriority_process(None).expect("as before"), slice)
        });
        let (after, slice) = nicer.join().expect("the thread ends");
        assert_eq!(after, (before + 3).min(LOWEST));
        assert_eq!(getpriority_process(None).expect("as before"), before);
        // Systems with this line have custom slices.
        let slice = slice.ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("se.slice"))?;
            line.rsplit(':').next()?.trim().parse::<u64>().ok()
        });
        if let Some(slice) = slice {
            assert_eq!(slice, SLICE);
        }
    }

    #[test]
    fn nothing_is_nicer_than_the_lowest_priority() {
        let polite = Polite::nicer_by(i32::MAX).expect("it is known");
        assert_eq!(polite.niceness, LOWEST);
    }
}
