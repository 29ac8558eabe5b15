//! Reservations: things that only one object can have, taken for a write before it is stored. Examples are addresses,
//! ports and a share of a quota.

use crate::Str;

/// Something that is reserved for one write. Dropping it releases it.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::kind::{Reservation, Reservations};
/// use std::collections::HashSet;
/// use std::sync::{Arc, Mutex};
///
/// /// A berth that no other boat may take.
/// struct Berth {
///     taken: Arc<Mutex<HashSet<u32>>>,
///     number: u32,
/// }
///
/// impl Reservation for Berth {}
///
/// impl Drop for Berth {
///     fn drop(&mut self) {
///         if let Ok(mut taken) = self.taken.lock() {
///             taken.remove(&self.number);
///         }
///     }
/// }
///
/// let taken = Arc::new(Mutex::new(HashSet::from([7])));
/// let held = Reservations::from(Berth { taken: taken.clone(), number: 7 });
/// drop(held);
/// assert!(taken.lock().is_ok_and(|taken| taken.is_empty()));
/// ```
pub trait Reservation: Send + Sync {
    /// Called when the write is stored, at this revision. By default the reservation is released now, because views that
    /// are updated inside each commit already count what is stored as taken.
    fn keep(self: Box<Self>, _revision: u64) {}

    /// Returns the objects that the reservation was decided on, if other servers that share the store can change them. The
    /// reservation is in the memory of this server only, so the write is decided again if another server did.
    fn depends_on(&self) -> Vec<Dependency> {
        Vec::new()
    }
}

/// Objects that a reservation was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Where objects of their kind are stored ([`Kind::store`](crate::Kind)).
    pub store: Str,
    /// The namespace of the objects; `None` for all of the kind.
    pub namespace: Option<Str>,
    /// The revision up to which changes were seen; `None` for the one at which the write began.
    pub revision: Option<u64>,
}

/// All reservations of one write.
#[derive(Default)]
#[must_use = "dropping this releases the reservations"]
pub struct Reservations(Vec<Box<dyn Reservation>>);

crate::opaque_debug!(Reservations);

impl Reservations {
    /// Adds a reservation.
    pub fn add(&mut self, reservation: impl Reservation + 'static) {
        self.0.push(Box::new(reservation));
    }

    /// Adds all reservations of another list.
    pub fn append(&mut self, mut more: Reservations) {
        self.0.append(&mut more.0);
    }

    /// The same, but released when the write ends, also when it was stored.
    pub fn until_done(self) -> Reservations {
        match self.is_empty() {
            true => self,
            false => Reservations::from(UntilDone(self)),
        }
    }

    /// Returns whether there are no reservations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the objects that the reservations were decided on.
    pub fn depends_on(&self) -> impl Iterator<Item = Dependency> + '_ {
        self.0
            .iter()
            .flat_map(|reservation| reservation.depends_on())
    }

    /// Tells every reservation that the write is stored, at this revision.
    pub fn keep(self, revision: u64) {
        for reservation in self.0 {
            reservation.keep(revision);
        }
    }
}

impl<H: Reservation + 'static> From<H> for Reservations {
    fn from(reservation: H) -> Reservations {
        Reservations(vec![Box::new(reservation)])
    }
}

/// Releases its reservations also when the write was stored.
struct UntilDone(Reservations);

impl Reservation for UntilDone {
    fn depends_on(&self) -> Vec<Dependency> {
        self.0.depends_on().collect()
    }
}
