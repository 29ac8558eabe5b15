//! Assignability of types, and substitution of type variables.
//!
//! Upstream: cel-go checker/types.go.

use std::sync::Arc;

use crate::types::{Opaque, Param, Type};

/// The types assigned to type variables so far.
#[derive(Default)]
pub(super) struct Substitutions {
    bound: Vec<Option<Type>>,
    /// The assignments to restore when an attempt fails.
    trail: Vec<(u32, Option<Type>)>,
}

impl Substitutions {
    /// Returns an unused type variable.
    pub(super) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Param(Param::Fresh(self.bound.len() as u32 - 1))
    }

    fn find(&self, param: Param) -> Option<&Type> {
        match param {
            Param::Fresh(number) => self.bound.get(number as usize)?.as_ref(),
            Param::Named(_) => None,
        }
    }

    fn bind(&mut self, param: Param, ty: Type) {
        if let Param::Fresh(number) = param
            && let Some(slot) = self.bound.get_mut(number as usize)
        {
            self.trail.push((number, slot.replace(ty)));
        }
    }

    /// Returns whether each type is assignable to its counterpart; if not, assigns no variables.
    pub(super) fn assignable_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.trail.clear();
        let fits = self.all(from, to);
        if !fits {
            while let Some((number, old)) = self.trail.pop() {
                self.bound[number as usize] = old;
            }
        }
        fits
    }

    /// Returns whether two types are assignable to each other; if not, assigns no variables.
    pub(super) fn assignable(&mut self, a: &Type, b: &Type) -> bool {
        self.assignable_all(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    fn all(&mut self, a: &[Type], b: &[Type]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.fits(a, b))
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Param(param) = b {
            match self.substitute(a, *param) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Param(param) = a {
            return self.substitute(b, *param).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::List(a), Type::List(b)) => self.fits(a, b),
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::Opaque(a), Type::Opaque(b)) => {
                a.name == b.name && self.all(&a.params, &b.params)
            }
            _ => a.is_exactly(b),
        }
    }

    /// Binds a type parameter to a type, or widens its binding. Returns whether the type fits, and
    /// whether the parameter was bound before.
    fn substitute(&mut self, ty: &Type, param: Param) -> (bool, bool) {
        if matches!(ty, Type::Param(other) if *other == param) {
            return (true, true);
        }
        if let Some(known) = self.find(param).cloned() {
            if ty.is_exactly(&known) {
                return (true, true);
            }
            if !self.fits(ty, &known) {
                return (false, true);
            }
            let wider = most_general(ty, &known).clone();
            if self.not_within(param, &wider) {
                self.bind(param, wider);
            }
            return (true, true);
        }
        if self.not_within(param, ty) {
            self.bind(param, ty.clone());
            return (true, false);
        }
        (false, false)
    }

    fn not_within(&self, param: Param, ty: &Type) -> bool {
        match ty {
            Type::Param(other) if *other == param => false,
            Type::Param(other) => self
                .find(*other)
                .is_none_or(|known| self.not_within(param, known)),
            Type::List(element) => self.not_within(param, element),
            Type::Map(entry) => {
                self.not_within(param, &entry.0) && self.not_within(param, &entry.1)
            }
            Type::Type(Some(of)) => self.not_within(param, of),
            Type::Opaque(opaque) => opaque.params.iter().all(|ty| self.not_within(param, ty)),
            _ => true,
        }
    }

    /// Replaces the variables of a type; in the last pass unassigned variables become `dyn`.
    pub(super) fn resolve(&self, ty: &Type, last: bool) -> Type {
        match ty {
            Type::Param(param) => match self.find(*param) {
                Some(known) => self.resolve(known, last),
                None if last => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(element) => Type::list(self.resolve(element, last)),
            Type::Map(entry) => {
                Type::map(self.resolve(&entry.0, last), self.resolve(&entry.1, last))
            }
            Type::Type(Some(of)) => Type::type_of(self.resolve(of, last)),
            Type::Opaque(opaque) if !opaque.params.is_empty() => Type::Opaque(Arc::new(Opaque {
                name: opaque.name.clone(),
                params: opaque
                    .params
                    .iter()
                    .map(|ty| self.resolve(ty, last))
                    .collect(),
                message: opaque.message,
            })),
            _ => ty.clone(),
        }
    }

    /// Replaces the letters of a signature's type by new variables.
    pub(super) fn instantiate(ty: &Type, letters: &[(Param, Type)]) -> Type {
        let within = |ty: &Type| Substitutions::instantiate(ty, letters);
        match ty {
            Type::Param(param) => letters
                .iter()
                .find(|(letter, _)| letter == param)
                .map_or_else(|| ty.clone(), |(_, fresh)| fresh.clone()),
            Type::List(element) => Type::list(within(element)),
            Type::Map(entry) => Type::map(within(&entry.0), within(&entry.1)),
            Type::Type(Some(of)) => Type::type_of(within(of)),
            Type::Opaque(opaque) if !opaque.params.is_empty() => Type::Opaque(Arc::new(Opaque {
                name: opaque.name.clone(),
                params: opaque.params.iter().map(within).collect(),
                message: opaque.message,
            })),
            _ => ty.clone(),
        }
    }
}

fn is_nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null | Type::Opaque(_) | Type::Object(_) | Type::Duration | Type::Timestamp
    )
}

/// Returns the wider of two types that are assignable to each other.
pub(super) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    match (a, b) {
        (Type::Null, Type::Dyn | Type::Any | Type::Param(_)) => b,
        // The nullable type is the wider one.
        (_, Type::Null) => a,
        (Type::Null, _) => b,
        _ if is_equal_or_wider(a, b) => a,
        _ => b,
    }
}

fn is_equal_or_wider(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
        (Type::Opaque(a), Type::Opaque(b)) => {
            a.name == b.name
                && a.params.len() == b.params.len()
                && a.params
                    .iter()
                    .zip(&b.params)
                    .all(|(a, b)| is_equal_or_wider(a, b))
        }
        (Type::List(a), Type::List(b)) => is_equal_or_wider(a, b),
        (Type::Map(a), Type::Map(b)) => {
            is_equal_or_wider(&a.0, &b.0) && is_equal_or_wider(&a.1, &b.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => a.is_exactly(b),
    }
}
