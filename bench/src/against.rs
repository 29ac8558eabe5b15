//! Compares two builds of Bareboat, such as a new one with an older one.
//!
//! Both are measured in turn, several times, so that a machine that becomes slower or faster meanwhile affects both. The
//! table has the medians, the range of each build, and the change.

use std::path::Path;

use anyhow::Result;

use crate::args::{Args, Row, Side};
use crate::bench::{self, say};
use crate::report::{Figures, QUANTITIES, Quantity, Unit, measure};
use crate::server::Programs;

/// The rows of a comparison: memory, and processor time of the most frequent requests.
const ROWS: [Row; 7] = [
    Row::Idle,
    Row::Create1,
    Row::Create,
    Row::Get,
    Row::GetByToken,
    Row::List,
    Row::Apply,
];

/// Measures both builds and prints the table. There are no targets, so none is missed.
pub(crate) async fn run(args: &Args, other: &Path) -> Result<usize> {
    let mut ours = args.clone();
    ours.bareboat = Some(Programs::find(args, Side::Ours)?.bareboat()?);
    if ours.only_rows.is_empty() {
        ours.only_rows = ROWS.to_vec();
    }
    let mut theirs = ours.clone();
    theirs.bareboat = Some(other.to_owned());
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        say(Side::Ours, &format!("round {round} of {}", args.rounds));
        // The order changes, so that no build always has the warmer machine.
        match round % 2 {
            1 => {
                old.push(bench::measure(&theirs, Side::Ours).await?);
                new.push(bench::measure(&ours, Side::Ours).await?);
            }
            _ => {
                new.push(bench::measure(&ours, Side::Ours).await?);
                old.push(bench::measure(&theirs, Side::Ours).await?);
            }
        }
    }
    print(&old, &new);
    Ok(0)
}

fn print(old: &[Figures], new: &[Figures]) {
    println!(
        "{:<42}{:>12}{:>24}{:>12}{:>24}{:>9}",
        "quantity", "other", "range", "this", "range", "change"
    );
    for quantity in QUANTITIES.iter().filter(|quantity| is_cost(quantity)) {
        let (old, new) = (Spread::of(old, quantity), Spread::of(new, quantity));
        if old.is_none() && new.is_none() {
            continue;
        }
        let change = old.as_ref().zip(new.as_ref());
        let change = change.map(|(old, new)| (new.median / old.median - 1.0) * 100.0);
        let columns = |spread: &Option<Spread>| match spread {
            Some(spread) => (
                measure(spread.median, quantity.unit),
                format!(
                    "{} to {}",
                    measure(spread.least, quantity.unit),
                    measure(spread.most, quantity.unit)
                ),
            ),
            None => ("—".to_owned(), String::new()),
        };
        let ((old, old_range), (new, new_range)) = (columns(&old), columns(&new));
        println!(
            "{:<42}{old:>12}{old_range:>24}{new:>12}{new_range:>24}{:>9}",
            quantity.label,
            change.map_or(String::new(), |change| format!("{change:+.1} %")),
        );
    }
}

/// Returns whether less of a quantity is better, and two builds differ in it by themselves: memory and processor time.
fn is_cost(quantity: &Quantity) -> bool {
    quantity.unit == Unit::Mebibytes && !quantity.id.ends_with(".mib")
        || quantity.id.ends_with(".cpu")
}

/// The values of one quantity over all rounds.
#[derive(Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(rounds: &[Figures], quantity: &Quantity) -> Option<Spread> {
        let mut values: Vec<f64> = rounds
            .iter()
            .filter_map(|figures| figures.number(quantity.id))
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        Some(Spread {
            least: *values.first()?,
            median: values[values.len() / 2],
            most: *values.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_over_all_rounds_that_have_the_quantity() {
        let get = QUANTITIES
            .iter()
            .find(|it| it.id == "get.cpu")
            .expect("listed");
        let rounds = [3.0, 1.0, 2.0].map(|value| {
            let mut figures = Figures::default();
            figures.set("get.cpu", value);
            figures
        });
        let spread = Spread {
            least: 1.0,
            median: 2.0,
            most: 3.0,
        };
        assert_eq!(Spread::of(&rounds, get), Some(spread));
        assert_eq!(Spread::of(&[Figures::default()], get), None);
    }
}
