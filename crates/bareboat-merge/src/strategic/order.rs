//! The order of merged lists: `$setElementOrder` first, then the patch's order, then the old one.

use super::{
    BAD_ELEMENT_ORDER, DIRECTIVE, ELEMENT_ORDER, Node, StrategicError, directed_field,
    lists::{self, Elements, identified, no_merge_key},
    strip_directives,
};
use bareboat_api::{Map, Str, Value, typing::NodeType};
use std::collections::{HashMap, HashSet};

/// The identity of a list element: the value of its merge key, or its own value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity(Str);

impl Identity {
    pub(super) fn of(value: &Value) -> Identity {
        match value {
            // Other values print without a leading quote, so only strings look like strings.
            Value::String(text) => {
                let mut own = Str::with_capacity(text.len() + 1);
                own.push('"');
                own.push_str(text);
                Identity(own)
            }
            other => Identity(other.to_string().into()),
        }
    }
}

/// The first position of each element of a list.
#[derive(Clone, Default)]
pub(super) struct Ranks {
    places: HashMap<Identity, usize>,
    len: usize,
}

impl Ranks {
    pub(super) fn of(list: &[Value], key: Option<&str>) -> Ranks {
        let mut ranks = Ranks::default();
        for value in list {
            match key {
                None => ranks.push(Identity::of(value)),
                Some(key) => match value.get(key) {
                    Some(id) => ranks.push(Identity::of(id)),
                    None => ranks.len += 1,
                },
            }
        }
        ranks
    }

    pub(super) fn push(&mut self, identity: Identity) {
        self.places.entry(identity).or_insert(self.len);
        self.len += 1;
    }

    pub(super) fn set(&mut self, identity: Identity, place: usize) {
        self.places.insert(identity, place);
    }

    pub(super) fn get(&self, identity: &Identity) -> Option<usize> {
        self.places.get(identity).copied()
    }
}

/// Sorts the elements of the patch into the patch's order and inserts the others near their old
/// positions.
pub(super) fn arrange(merged: Vec<(Identity, Value)>, patch: &Ranks, server: &Ranks) -> Vec<Value> {
    let (mut wanted, mut kept): (Vec<_>, Vec<_>) = merged
        .into_iter()
        .partition(|(identity, _)| patch.get(identity).is_some());
    bareboat_api::sort_by(&mut wanted, |(a, _), (b, _)| {
        patch.get(a).cmp(&patch.get(b))
    });
    let place = |identity: &Identity| server.get(identity).unwrap_or(usize::MAX);
    bareboat_api::sort_by(&mut kept, |(a, _), (b, _)| place(a).cmp(&place(b)));

    let mut arranged = Vec::with_capacity(wanted.len() + kept.len());
    let mut wanted = wanted.into_iter().peekable();
    let mut kept = kept.into_iter().peekable();
    loop {
        let keep = match (kept.peek(), wanted.peek()) {
            (None, None) => return arranged,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((kept, _)), Some((wanted, _))) => {
                matches!((server.get(kept), server.get(wanted)), (Some(k), Some(w)) if k < w)
            }
        };
        let next = if keep { kept.next() } else { wanted.next() };
        arranged.extend(next.map(|(_, value)| value));
    }
}

/// Applies the `$setElementOrder` directives of a patch and removes them, with their lists, from
/// it.
pub(super) fn merge_ordered_lists(
    target: &mut Map,
    patch: &mut Map,
    node: Node,
) -> Result<(), StrategicError> {
    let directives: Vec<Str> = patch
        .keys()
        .filter(|key| key.starts_with(ELEMENT_ORDER))
        .map(Str::new)
        .collect();
    for directive in directives {
        let Some(Value::Array(order)) = patch.remove(&directive) else {
            return Err(no_list(&directive));
        };
        let name = directed_field(&directive, ELEMENT_ORDER).ok_or(BAD_ELEMENT_ORDER)?;
        merge_ordered_list(target, patch, name, &order, node)?;
    }
    Ok(())
}

fn merge_ordered_list(
    target: &mut Map,
    patch: &mut Map,
    name: &str,
    order: &[Value],
    node: Node,
) -> Result<(), StrategicError> {
    let field = node.and_then(|node| node.field(name));
    if field.is_none() && node.is_some_and(|node| node.node_type() == NodeType::Struct) {
        let text = format!("unable to find api field for the json field {name:?}");
        return Err(StrategicError::Inapplicable(text));
    }
    let key = field.and_then(|field| field.patch_strategy().merge_key);
    let new = match patch.remove(name) {
        None => None,
        Some(Value::Array(list)) => Some(list),
        Some(_) => return Err(no_list(name)),
    };
    let old = match target.get_mut(name) {
        None => None,
        Some(Value::Array(list)) => Some(std::mem::take(list)),
        Some(_) => return Err(no_list(name)),
    };
    if let Some(new) = &new {
        check_order(new, order, key)?;
    }
    let server = match (&old, &new, key) {
        (Some(old), Some(new), Some(key)) => order_after_deletions(old, new, key),
        (Some(old), _, key) => Ranks::of(old, key),
        (None, ..) => Ranks::default(),
    };
    let nothing = Vec::new();
    let (before, wanted) = (
        old.as_ref().unwrap_or(&nothing),
        new.as_ref().unwrap_or(&nothing),
    );
    if (old.is_some() || new.is_some()) && before.is_empty() && wanted.is_empty() {
        let text = "no elements in any of the given slices";
        return Err(StrategicError::Inapplicable(text.to_owned()));
    }
    let merged = match (old, new) {
        (None, None) => return Ok(()),
        (Some(old), None) => old,
        (None, Some(mut new)) => {
            new.retain_mut(strip_directives);
            new
        }
        (Some(old), Some(new)) => lists::merge(old, new, name, field)?,
    };
    let objects = lists::elements(&[&merged])? == Some(Elements::Objects);
    if objects && key.is_none() {
        // Without a merge key objects cannot be sorted.
        target.insert(name, Value::Array(merged));
        return Ok(());
    }
    let ranks = Ranks::of(order, key);
    let arranged = arrange(identified(merged, key)?, &ranks, &server);
    target.insert(name, Value::Array(arranged));
    Ok(())
}

fn no_list(name: &str) -> StrategicError {
    StrategicError::Inapplicable(format!("expected a list in {name}"))
}

/// Returns the old order without the deleted elements; as many new elements as were deleted follow.
///
/// Kubernetes reuses the freed places of its list of the old order, and clients see the resulting
/// order.
fn order_after_deletions(old: &[Value], new: &[Value], key: &str) -> Ranks {
    let identity = |value: &Value| value.get(key).map(Identity::of);
    let (deletions, plain): (Vec<&Value>, Vec<&Value>) = new.iter().partition(|value| {
        value
            .get(DIRECTIVE)
            .is_some_and(|word| word == &"delete".into())
    });
    if deletions.is_empty() {
        return Ranks::of(old, Some(key));
    }
    let deleted: HashSet<Identity> = deletions.into_iter().filter_map(identity).collect();
    let mut ranks = Ranks::default();
    let kept = old
        .iter()
        .filter_map(identity)
        .filter(|identity| !deleted.contains(identity));
    kept.for_each(|identity| ranks.push(identity));
    let freed = old.len().saturating_sub(ranks.len);
    let fresh = plain.into_iter().filter_map(identity);
    let fresh: Vec<Identity> = fresh
        .filter(|identity| ranks.get(identity).is_none())
        .collect();
    fresh
        .into_iter()
        .take(freed)
        .for_each(|identity| ranks.push(identity));
    ranks
}

/// Checks that the list of the patch has the order of the directive.
fn check_order(list: &[Value], order: &[Value], key: Option<&str>) -> Result<(), StrategicError> {
    if list.is_empty() || order.is_empty() {
        return Ok(());
    }
    let identity = |value: &Value| match (key, value) {
        (None, value) => Ok(Identity::of(value)),
        (Some(key), Value::Object(members)) => {
            let id = members.get(key).ok_or_else(|| no_merge_key(members, key))?;
            Ok(Identity::of(id))
        }
        (Some(_), _) => Err(StrategicError::Inapplicable(format!(
            "expected an object, but received a {}",
            value.type_name()
        ))),
    };
    let mut order = order.iter();
    let plain = |value: &&Value| value.get(DIRECTIVE).is_none();
    for value in list.iter().filter(plain) {
        let wanted = identity(value)?;
        loop {
            let Some(next) = order.next() else {
                return Err(StrategicError::Inapplicable(format!(
                    "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list",
                    Value::Array(list.to_vec())
                )));
            };
            if identity(next)? == wanted {
                break;
            }
        }
    }
    Ok(())
}
