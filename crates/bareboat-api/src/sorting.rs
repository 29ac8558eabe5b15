//! A stable sort that is compiled once for all types. The sort of the standard library takes ten kilobytes of code per type.

use std::cmp::Ordering;

/// Up to so many items are sorted by insertion, as in the standard library.
const FEW: usize = 20;

/// Sorts items; equal ones keep their order.
///
/// For many items it takes more time than `slice::sort_by`: the comparison is called through a pointer. Use it where
/// sorting is seldom, or where there are few items.
///
/// ```
/// let mut words = ["bb", "a", "aa", "b"];
/// bareboat_api::sort_by(&mut words, |a, b| a.len().cmp(&b.len()));
/// assert_eq!(words, ["a", "b", "bb", "aa"]);
/// ```
pub fn sort_by<T>(items: &mut [T], mut order: impl FnMut(&T, &T) -> Ordering) {
    if items.len() > FEW {
        let mut places: Vec<usize> = (0..items.len()).collect();
        sort_places(&mut places, &mut |a, b| order(&items[a], &items[b]));
        return arrange(items, &mut places);
    }
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && order(&items[at - 1], &items[at]) == Ordering::Greater {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[inline(never)]
fn sort_places(places: &mut [usize], order: &mut dyn FnMut(usize, usize) -> Ordering) {
    places.sort_by(|a, b| order(*a, *b));
}

/// Moves to each place the item whose place is given. Every cycle of places is followed once.
fn arrange<T>(items: &mut [T], places: &mut [usize]) {
    for start in 0..items.len() {
        let mut at = start;
        loop {
            let next = std::mem::replace(&mut places[at], at);
            if next == start {
                break;
            }
            items.swap(at, next);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library(keys in prop::collection::vec(0u8..16, 0..100)) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by(&mut items, |(a, _), (b, _)| a.cmp(b));
            prop_assert_eq!(items, expected);
        }
    }
}
