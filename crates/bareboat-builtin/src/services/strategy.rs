//! The strategy of Service, with allocation.

use super::allocate;
use super::claims::Claims;
use super::families;
use super::ip_addresses::{addresses, ip_address_of};
use bareboat_api::kind::{Companion, Kind, Reservations, Strategy, WriteContext};
use bareboat_api::{Object, Status, Str, Value};
use std::sync::Arc;

/// Adds allocation of addresses and ports to the kind Service.
pub fn allocating(mut kind: Kind, claims: &Arc<Claims>) -> Kind {
    kind.strategy = Arc::new(Allocating {
        inner: kind.strategy,
        claims: claims.clone(),
    });
    kind
}

struct Allocating {
    inner: Arc<dyn Strategy>,
    claims: Arc<Claims>,
}

impl Allocating {
    fn choose(
        &self,
        new: &mut Object,
        old: Option<&Object>,
        ctx: &WriteContext<'_>,
    ) -> Result<Reservations, Status> {
        let (name, key) = (
            new.name().to_owned(),
            format!("{}/{}", new.namespace(), new.name()),
        );
        let old = old.and_then(|old| old.get("spec"));
        let mut reservation = self.claims.choose(&key, old.is_some(), ctx.dry_run);
        let mut spec = new.map_mut().remove("spec").unwrap_or_default();
        let chosen = complete(&name, &mut spec, old, &mut reservation);
        new.map_mut().insert("spec", spec);
        chosen?;
        Ok(reservation.into())
    }
}

fn complete(
    name: &str,
    spec: &mut Value,
    old: Option<&Value>,
    reservation: &mut super::claims::ServiceReservation,
) -> Result<(), Status> {
    allocate::keep(spec, old);
    families::settle(spec, old, reservation.ranges())
        .map_err(|wrong| allocate::invalid(name, &wrong))?;
    allocate::addresses(name, spec, old, reservation)?;
    allocate::ports(name, spec, old, reservation)
}

impl Strategy for Allocating {
    fn inner(&self) -> Option<&dyn Strategy> {
        Some(&*self.inner)
    }

    fn reserve(
        &self,
        new: &mut Object,
        old: Option<&Object>,
        ctx: &WriteContext<'_>,
    ) -> Result<Reservations, Status> {
        // Only writes to the service itself allocate; writes to its status do not.
        match ctx.subresource {
            None => self.choose(new, old, ctx),
            Some(_) => Ok(Reservations::default()),
        }
    }

    fn companions(&self, object: &Object) -> Vec<Companion> {
        let mut all = self.inner.companions(object);
        let ip_addresses = addresses(object.value()).into_iter();
        all.extend(ip_addresses.map(|address| Companion {
            group: "networking.k8s.io",
            resource: "ipaddresses",
            name: Str::new(address.to_string()),
            says: Some(ip_address_of(object.namespace(), object.name(), address)),
        }));
        all
    }
}
