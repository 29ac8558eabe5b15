//! The verbs of a resource.

/// One verb of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Verb {
    /// Create an object.
    Create,
    /// Delete an object.
    Delete,
    /// Delete many objects.
    DeleteCollection,
    /// Read an object.
    Get,
    /// Read many objects.
    List,
    /// Change part of an object.
    Patch,
    /// Replace an object.
    Update,
    /// Follow changes.
    Watch,
}

impl Verb {
    /// All verbs in the order discovery lists them.
    pub const ALL: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];

    /// Returns the name used in the API.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Verbs(u8);

impl Verbs {
    /// Every verb.
    pub const ALL: Verbs = Verbs(0xff);
    /// No verb.
    pub const NONE: Verbs = Verbs(0);

    /// Returns the set of these verbs.
    pub const fn of(verbs: &[Verb]) -> Verbs {
        let mut bits = 0;
        let mut index = 0;
        while index < verbs.len() {
            bits |= 1 << verbs[index] as u8;
            index += 1;
        }
        Verbs(bits)
    }

    /// Returns the set without these verbs.
    #[must_use]
    pub const fn without(self, verbs: &[Verb]) -> Verbs {
        Verbs(self.0 & !Verbs::of(verbs).0)
    }

    /// Returns whether the set contains the verb.
    pub const fn has(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u8) != 0
    }

    /// Returns the verbs in the order discovery lists them.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.has(*verb))
    }
}
