//! How members are shared out among servers.

use bareboat_shelf::Lease;

/// The members that a server takes, and those that it gives back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    pub(crate) taken: Vec<i64>,
    pub(crate) given: Vec<i64>,
}

/// Gives a server its share of all members. Leases of servers that are gone have no holder.
pub(crate) fn share_out(leases: &mut [Lease], hub: &str, hubs: usize) -> Moves {
    let share = leases.len().div_ceil(hubs.max(1));
    let mut moves = Moves::default();
    let mut own = 0;
    for lease in leases.iter_mut().filter(|lease| lease.holder == hub) {
        own += 1;
        if own > share {
            lease.holder.clear();
            moves.given.push(lease.member);
        }
    }
    // What was just given back is for others.
    let free = leases.iter_mut().filter(|lease| lease.holder.is_empty());
    let free = free.filter(|lease| !moves.given.contains(&lease.member));
    for lease in free.take(share.saturating_sub(own)) {
        hub.clone_into(&mut lease.holder);
        lease.term += 1;
        moves.taken.push(lease.member);
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::{Moves, share_out};
    use bareboat_shelf::Lease;

    #[test]
    fn a_server_takes_what_is_free_and_gives_back_what_is_too_much() {
        let lease = |member: i64, holder: &str| Lease {
            member,
            holder: holder.to_owned(),
            ..Lease::default()
        };
        let mut leases = [lease(1, "a"), lease(2, "a"), lease(3, ""), lease(4, "a")];
        let moves = share_out(&mut leases, "a", 2);
        let expected = Moves {
            taken: vec![],
            given: vec![4],
        };
        assert_eq!(moves, expected);
        let moves = share_out(&mut leases, "b", 2);
        assert_eq!(moves.taken, [3, 4]);
        assert_eq!((leases[2].holder.as_str(), leases[2].term), ("b", 1));
        assert_eq!(share_out(&mut leases, "b", 2), Moves::default());
    }
}
