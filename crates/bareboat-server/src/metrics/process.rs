//! Process metrics from `/proc`; Linux only.

use std::fs;

/// The unit of times under `/proc`: a hundredth of a second, on every architecture.
const TICKS: f64 = 100.0;

/// Process metrics; zero if unknown.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) cpu_seconds: f64,
    /// In seconds since 1970.
    pub(super) start_time: f64,
    pub(super) resident_bytes: u64,
    pub(super) virtual_bytes: u64,
    pub(super) open_files: u64,
    pub(super) most_files: u64,
}

impl Process {
    /// Returns whether the metrics are available.
    pub(super) fn is_known() -> bool {
        fs::exists("/proc/self/stat").unwrap_or(false)
    }

    pub(super) fn read() -> Process {
        let mut process = Process::default();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        process.read_stat(&text("/proc/self/stat"), &text("/proc/stat"));
        process.read_status(&text("/proc/self/status"));
        process.most_files = most_files(&text("/proc/self/limits"));
        // Listing the directory opens it, which adds one.
        let open = fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64);
        process.open_files = open.saturating_sub(1);
        process
    }

    fn read_stat(&mut self, stat: &str, system: &str) {
        // The name of the program may contain anything; fields are counted after it.
        let Some((_, fields)) = stat.rsplit_once(')') else {
            return;
        };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // Counted from the state, which is the third field of the line.
        let ticks = |field: usize| -> f64 {
            let text = fields.get(field - 3).copied().unwrap_or("");
            text.parse().unwrap_or(0.0)
        };
        self.cpu_seconds = (ticks(14) + ticks(15)) / TICKS;
        let booted = system
            .lines()
            .find_map(|line| line.strip_prefix("btime "))
            .and_then(|text| text.trim().parse::<f64>().ok());
        self.start_time = booted.unwrap_or(0.0) + ticks(22) / TICKS;
    }

    fn read_status(&mut self, status: &str) {
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number =
                line.and_then(|rest| rest.trim_end_matches("kB").trim().parse::<u64>().ok());
            number.unwrap_or(0) * 1024
        };
        self.resident_bytes = kilobytes("VmRSS:");
        self.virtual_bytes = kilobytes("VmSize:");
    }
}

fn most_files(limits: &str) -> u64 {
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|soft| soft.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_tells_of_a_process() {
        let mut process = Process::default();
        process.read_stat(
            "7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 9 0 1000 1 2 3",
            "cpu 1 2 3\nbtime 1700000000\n",
        );
        assert_eq!(process.cpu_seconds, 3.0);
        assert_eq!(process.start_time, 1_700_000_010.0);
        process.read_status("VmSize:\t  2048 kB\nVmRSS:\t    512 kB\n");
        assert_eq!(
            (process.virtual_bytes, process.resident_bytes),
            (2 << 20, 512 << 10)
        );
        let limits = "Max open files            1024                 524288               files\n";
        assert_eq!(most_files(limits), 1024);
        assert_eq!(most_files(""), 0);
    }
}
