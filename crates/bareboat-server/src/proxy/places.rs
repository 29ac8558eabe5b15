//! Places at an upstream server: how many requests to it may run at once, in all and of one user.

use bareboat_api::Str;
use bareboat_api::kind::User;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// How many requests to one upstream server may run at once; streams and tunnels count until they end.
const ALL: usize = 1024;
/// How many of them one user may have, so that one user cannot take all.
const OF_ONE: usize = ALL / 4;
/// How many requests to a peer may run at once: as many as clients may have connections here, about.
const OF_PEER: usize = 64 * 1024;

/// The places at one upstream server, so that a hanging one does not affect others.
pub struct Places {
    taken: Mutex<Taken>,
    all: usize,
    of_one: usize,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            taken: Mutex::default(),
            all: ALL,
            of_one: OF_ONE,
        }
    }
}

bareboat_api::opaque_debug!(Places);

#[derive(Default)]
struct Taken {
    all: usize,
    /// Users without a place are absent.
    of: HashMap<Str, usize>,
}

/// Why a request has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPlace {
    /// All are taken.
    #[error("too many are under way, please try again later")]
    Full,
    /// The user has as many as one user may have.
    #[error(
        "{OF_ONE} of yours are under way, the most that one user may have; end some of them, then try again"
    )]
    Share,
}

impl Places {
    /// The places at another server of the same program, which limits its users itself.
    pub(super) fn of_peer() -> Places {
        Places {
            taken: Mutex::default(),
            all: OF_PEER,
            of_one: usize::MAX,
        }
    }

    /// Takes a place for a request of a user.
    pub(super) fn take(self: &Arc<Self>, user: &User) -> Result<Place, NoPlace> {
        let mut taken = self.taken.lock();
        let own = taken.of.get(&user.name);
        if own.is_some_and(|own| *own >= self.of_one) {
            return Err(NoPlace::Share);
        }
        if taken.all >= self.all {
            return Err(NoPlace::Full);
        }
        taken.all += 1;
        *taken.of.entry(user.name.clone()).or_default() += 1;
        Ok(Place {
            places: self.clone(),
            user: user.name.clone(),
        })
    }
}

/// A place that is taken until this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    user: Str,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.all -= 1;
        if let Some(own) = taken.of.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.of.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Arc<Places>, name: &str, count: usize) -> Vec<Result<Place, NoPlace>> {
        let user = User {
            name: name.into(),
            ..User::default()
        };
        (0..count).map(|_| places.take(&user)).collect()
    }

    #[test]
    fn a_user_has_a_quarter_and_four_users_have_all() {
        let places = Arc::new(Places::default());
        let mut held = take(&places, "ann", ALL);
        assert!(held[..ALL / 4].iter().all(Result::is_ok));
        let refused =
            |place: &Result<Place, NoPlace>| place.as_ref().err() == Some(&NoPlace::Share);
        assert!(held[ALL / 4..].iter().all(refused));
        for name in ["bob", "cid", "dot"] {
            let more = take(&places, name, ALL / 4);
            assert!(more.iter().all(Result::is_ok), "{name}");
            held.extend(more);
        }
        let late = take(&places, "eve", 1);
        assert_eq!(late[0].as_ref().err(), Some(&NoPlace::Full));
        held.clear();
        let taken = places.taken.lock();
        assert_eq!((taken.all, taken.of.len()), (0, 0));
    }
}
