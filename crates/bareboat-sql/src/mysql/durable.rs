//! The settings of a server that decide whether acknowledged writes survive a crash. The checks at the start and those of
//! `doctor` share them.

/// A setting, and its values with which nothing is lost.
pub(super) struct Durable {
    /// The name of the global variable.
    pub(super) name: &'static str,
    /// The values, the recommended one first.
    pub(super) values: &'static [&'static str],
    /// What is wrong with other values.
    pub(super) why: &'static str,
}

/// Both 1 and 3 flush the redo log before a commit is answered. 3 exists on MariaDB only, and flushes once more.
pub(super) const FLUSH: Durable = Durable {
    name: "innodb_flush_log_at_trx_commit",
    values: &["1", "3"],
    why: "the redo log is not flushed at every commit",
};

/// `DETECT_AND_RECOVER` is another word of MySQL for `ON`. `DETECT_ONLY` finds torn pages and has no copy of them;
/// `fast` of MariaDB does not flush the copies.
pub(super) const DOUBLEWRITE: Durable = Durable {
    name: "innodb_doublewrite",
    values: &["1", "ON", "DETECT_AND_RECOVER"],
    why: "torn pages cannot be repaired",
};

/// Counts only if the server has a binary log. In this case MariaDB also omits the flush of the storage engine.
pub(super) const BINLOG: Durable = Durable {
    name: "sync_binlog",
    values: &["1"],
    why: "with the binary log on, commits are not flushed",
};

impl Durable {
    /// Returns the settings that count for a server.
    pub(super) fn of(has_binlog: bool) -> &'static [Durable] {
        match has_binlog {
            true => &[FLUSH, DOUBLEWRITE, BINLOG],
            false => &[FLUSH, DOUBLEWRITE],
        }
    }

    /// Returns what is wrong with the value `found`, and what to do; `None` if nothing is lost with it.
    pub(super) fn complaint(&self, found: &str) -> Option<String> {
        let (why, good) = (self.why, self.values[0]);
        let accepted = self
            .values
            .iter()
            .any(|value| value.eq_ignore_ascii_case(found));
        (!accepted)
            .then(|| format!("{why}, so a crash loses acknowledged writes; set it to {good}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_lose_nothing_are_accepted() {
        for (setting, good, bad) in [
            (FLUSH, &["1", "3"][..], &["0", "2", ""][..]),
            (
                DOUBLEWRITE,
                &["1", "ON", "DETECT_AND_RECOVER"],
                &["0", "OFF", "DETECT_ONLY", "fast"],
            ),
            (BINLOG, &["1"], &["0", "100"]),
        ] {
            for value in good {
                assert_eq!(setting.complaint(value), None, "{value}");
            }
            for value in bad {
                assert!(setting.complaint(value).is_some(), "{value}");
            }
        }
    }
}
