//! Shuffle sharding: each flow may use a few of many queues, so that two flows seldom share all of theirs.

use smallvec::SmallVec;

/// Deals a hand of distinct cards out of a deck, `0..deck`, chosen by a hash.
pub fn deal(hash: u64, deck: u32, hand: u32) -> impl Iterator<Item = u32> {
    let hand = hand.min(deck);
    let mut dealt: SmallVec<[u32; 8]> = SmallVec::new();
    let mut entropy = hash;
    (0..hand).map(move |round| {
        let left = u64::from(deck - round);
        let mut card = (entropy % left) as u32;
        entropy /= left;
        // The position among the cards that are left becomes the card itself.
        let mut place = 0;
        while place < dealt.len() && card >= dealt[place] {
            card += 1;
            place += 1;
        }
        dealt.insert(place, card);
        card
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_hand_has_distinct_cards_of_the_deck(hash: u64, deck in 1u32..200, hand in 1u32..12) {
            let cards: Vec<u32> = deal(hash, deck, hand).collect();
            let mut unique = cards.clone();
            unique.sort_unstable();
            unique.dedup();
            prop_assert_eq!(unique.len(), cards.len());
            prop_assert_eq!(cards.len() as u32, hand.min(deck));
            prop_assert!(cards.iter().all(|card| *card < deck));
        }
    }

    #[test]
    fn every_card_is_dealt_about_as_often_as_any_other() {
        let mut counts = [0u32; 16];
        for number in 0u64..16_000 {
            // A multiplicative hash spreads the numbers.
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            deal(hash, 16, 4).for_each(|card| counts[card as usize] += 1);
        }
        assert!(
            counts.iter().all(|count| (3_200..4_800).contains(count)),
            "{counts:?}"
        );
    }
}
