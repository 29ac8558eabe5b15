//! Reservations: things that only one object can have, taken for a write before it is stored. Examples are addresses,
//! ports and a share of a quota.

/// Something that is reserved for one write. Dropping it releases it.
pub trait Reservation: Send + Sync {
    /// Called when the write is stored, at this revision. By default the reservation is released now, because views that
    /// are updated inside each commit already count what is stored as taken.
    fn keep(self: Box<Self>, _revision: u64) {}
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
struct UntilDone(#[allow(dead_code, reason = "held, not read")] Reservations);

impl Reservation for UntilDone {}
