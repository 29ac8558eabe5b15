//! The printed table: what was measured, the value, and the target.

/// A target of a value.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// None: the value is informative.
    None,
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// The lines of the table.
#[derive(Default)]
pub(super) struct Table {
    lines: Vec<[String; 3]>,
    missed: usize,
}

impl Table {
    /// Adds a value with its unit.
    pub(super) fn add(&mut self, label: &str, value: f64, unit: &str, target: Target) {
        let (text, good) = match target {
            Target::None => (String::new(), true),
            Target::AtLeast(least) => (format!("≥ {least}"), value >= least),
            Target::AtMost(most) => (format!("≤ {most}"), value <= most),
        };
        self.missed += usize::from(!good);
        let text = match good {
            true => text,
            false => format!("{text}, missed"),
        };
        let value = match value {
            value if value >= 100.0 => format!("{value:.0}"),
            value if value >= 10.0 => format!("{value:.1}"),
            value => format!("{value:.2}"),
        };
        let line = [label.to_owned(), format!("{value} {unit}"), text];
        eprintln!("bench: {}: {} {}", line[0], line[1], line[2]);
        self.lines.push(line);
    }

    /// Adds a row that could not be measured.
    pub(super) fn failed(&mut self, label: &str) {
        self.missed += 1;
        self.lines
            .push([label.to_owned(), "failed".to_owned(), String::new()]);
    }

    /// Adds a row that was left out.
    pub(super) fn left_out(&mut self, label: &str, why: &str) {
        self.lines
            .push([label.to_owned(), format!("left out: {why}"), String::new()]);
    }

    /// Prints the table as Markdown; returns how many targets were missed.
    pub(super) fn print(&self) -> usize {
        println!("| what | value | target |\n|---|---|---|");
        for [label, value, target] in &self.lines {
            println!("| {label} | {} | {target} |", value.trim());
        }
        self.missed
    }
}
