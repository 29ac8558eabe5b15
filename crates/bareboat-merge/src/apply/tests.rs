//! Server-side apply: ownership, conflicts, and removal of fields.

#![allow(clippy::unwrap_used)]
mod properties;
mod rules;
mod transcripts;
mod versions;

use super::*;
use crate::testing::{
    Node, atomic_list, keyed, map, object, open_struct, scalar, set_list, structure,
};
use bareboat_api::value;

/// A kind with one version.
struct OneVersion<'a> {
    api_version: &'a str,
    node: &'a Node,
    reset: FieldSet,
}

impl Versions for OneVersion<'_> {
    fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode> {
        (api_version == self.api_version).then_some(self.node as &dyn TypeNode)
    }
    fn reset_fields(&self, _: &str) -> Option<&FieldSet> {
        Some(&self.reset)
    }
}

/// Returns the type that the tests of rules use.
fn node() -> Node {
    let item = structure(&[("k", scalar()), ("v", scalar()), ("labels", map(scalar()))]);
    let spec = structure(&[
        ("a", scalar()),
        ("b", scalar()),
        ("set", set_list(scalar())),
        ("list", atomic_list(scalar())),
        ("items", keyed(&[("k", None)], item)),
        ("labels", map(scalar())),
        ("deep", structure(&[("x", scalar()), ("y", scalar())])),
        ("free", open_struct(&[])),
    ]);
    object(&[("spec", spec), ("status", structure(&[("n", scalar())]))])
}

/// A server for one object, reduced to managed fields.
struct Server {
    node: Node,
    live: Option<Value>,
    clock: u32,
}

impl Server {
    fn new() -> Server {
        Server {
            node: node(),
            live: None,
            clock: 0,
        }
    }

    fn holding(live: Value) -> Server {
        Server {
            live: Some(live),
            ..Server::new()
        }
    }

    fn with<T>(
        &mut self,
        subresource: &str,
        act: impl FnOnce(&FieldManager<'_>, Option<&Value>, &str) -> T,
    ) -> T {
        self.clock += 1;
        let now = format!(
            "2024-01-01T00:{:02}:{:02}Z",
            self.clock / 60,
            self.clock % 60
        );
        let reset = match subresource {
            "" => FieldSet::of_names(&["status"]),
            _ => FieldSet::of_names(&["spec"]),
        };
        let versions = OneVersion {
            api_version: "v1",
            node: &self.node,
            reset,
        };
        let fields = FieldManager {
            api_version: "v1",
            kind: "Thing",
            versions: &versions,
            converter: &NoConversion,
            empty: &|| None,
        };
        act(&fields, self.live.as_ref(), &now)
    }

    /// Applies a configuration of the spec.
    fn apply(&mut self, manager: &str, force: bool, spec: Value) -> Result<(), String> {
        let config = thing(spec);
        self.apply_object(manager, force, config)
            .map_err(|error| error.to_string())
    }

    fn apply_object(
        &mut self,
        manager: &str,
        force: bool,
        config: Value,
    ) -> Result<(), ApplyError> {
        let result = self.with("", |fields, live, now| {
            fields.apply(
                live,
                &config,
                force,
                Writer {
                    manager,
                    subresource: "",
                    now,
                },
            )
        });
        self.live = Some(result?);
        Ok(())
    }

    /// Replaces a member of the object through an endpoint.
    fn update(&mut self, manager: &str, subresource: &str, member: &str, value: Value) {
        let mut new = self.live.clone().unwrap_or_else(|| thing(Value::object()));
        new.make_object().insert(member, value);
        self.write(manager, subresource, new);
    }

    fn write(&mut self, manager: &str, subresource: &str, new: Value) {
        let result = self.with(subresource, |fields, live, now| {
            fields.update(
                live,
                new,
                Writer {
                    manager,
                    subresource,
                    now,
                },
            )
        });
        self.live = Some(result.unwrap());
    }

    fn spec(&self) -> Value {
        self.live
            .as_ref()
            .and_then(|live| live.get("spec"))
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the entries as `manager operation time fields`.
    fn managed(&self) -> Vec<String> {
        let list = self
            .live
            .as_ref()
            .and_then(managed::of)
            .and_then(Value::as_array);
        let entries = list.unwrap_or_default().iter().map(|entry| {
            let text = |name| {
                entry
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or("-")
                    .to_owned()
            };
            let time = text("time").chars().skip(17).take(2).collect::<String>();
            let subresource = entry.get("subresource").and_then(Value::as_str);
            let slash = subresource
                .map(|name| format!("/{name}"))
                .unwrap_or_default();
            let fields = entry.get("fieldsV1").unwrap();
            format!(
                "{}{slash} {} {time} {fields}",
                text("manager"),
                text("operation")
            )
        });
        entries.collect()
    }
}

fn thing(spec: Value) -> Value {
    value!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": (spec)})
}
