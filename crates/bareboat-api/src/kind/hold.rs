//! What a write takes before it is stored, so that nobody else takes it meanwhile: addresses, ports, a share of a quota.

/// Something that is held for one write; given back when it is dropped.
pub trait Hold: Send + Sync {
    /// The write happened, at this revision of the store. Without more ado it is given back now: what is stored counts as
    /// taken by then, for those who follow the store inside each commit.
    fn keep(self: Box<Self>, _revision: u64) {}
}

/// All that is held for one write.
#[derive(Default)]
#[must_use = "what is held is given back when this is dropped"]
pub struct Holds(Vec<Box<dyn Hold>>);

impl Holds {
    /// Holds one thing more.
    pub fn add(&mut self, hold: impl Hold + 'static) {
        self.0.push(Box::new(hold));
    }

    /// Holds what others hold, too.
    pub fn append(&mut self, mut more: Holds) {
        self.0.append(&mut more.0);
    }

    /// The same, to be given back when the write is done, whatever becomes of it.
    pub fn until_done(self) -> Holds {
        match self.is_empty() {
            true => self,
            false => Holds::from(UntilDone(self)),
        }
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The write happened, at this revision of the store.
    pub fn keep(self, revision: u64) {
        for hold in self.0 {
            hold.keep(revision);
        }
    }
}

impl<H: Hold + 'static> From<H> for Holds {
    fn from(hold: H) -> Holds {
        Holds(vec![Box::new(hold)])
    }
}

/// Gives back all it holds, also when the write happened.
struct UntilDone(#[allow(dead_code, reason = "held, not read")] Holds);

impl Hold for UntilDone {}
