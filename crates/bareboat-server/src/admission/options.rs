//! The options of a request as an object, for webhooks and policies.

use crate::request::query::Query;
use crate::verbs::{DeleteOptions, Propagation};
use bareboat_api::admission::{Operation, RequestOptions};
use bareboat_api::{Map, Value};

/// The options of a request; the object is made when something asks for it.
#[derive(Clone, Copy)]
pub(crate) enum OptionsOf<'a> {
    /// A write, with its options in the query.
    Write {
        operation: Operation,
        query: &'a Query,
    },
    /// A deletion.
    Delete(&'a DeleteOptions),
}

impl RequestOptions for OptionsOf<'_> {
    fn object(&self) -> Option<Value> {
        let mut map = Map::new();
        map.insert("apiVersion", "meta.k8s.io/v1".into());
        match self {
            OptionsOf::Write { operation, query } => {
                // A patch has the options of the update that it is, or of the creation of a missing object.
                let kind = match operation {
                    Operation::Create => "CreateOptions",
                    _ => "UpdateOptions",
                };
                map.insert("kind", kind.into());
                let dry_run = query.all("dryRun").filter(|text| !text.is_empty());
                let dry_run: Vec<Value> = dry_run.map(Value::string).collect();
                if !dry_run.is_empty() {
                    map.insert("dryRun", Value::Array(dry_run));
                }
                for key in ["fieldManager", "fieldValidation"] {
                    if let Some(text) = query.given(key) {
                        map.insert(key, Value::string(text));
                    }
                }
            }
            OptionsOf::Delete(options) => {
                map.insert("kind", "DeleteOptions".into());
                delete(options, &mut map);
            }
        }
        Some(Value::Object(map))
    }
}

fn delete(options: &DeleteOptions, map: &mut Map) {
    if options.dry_run {
        map.insert("dryRun", Value::Array(vec!["All".into()]));
    }
    if let Some(seconds) = options.grace_seconds {
        map.insert("gracePeriodSeconds", Value::Int(seconds));
    }
    match (options.old_orphan, options.propagation) {
        (Some(orphan), _) => {
            map.insert("orphanDependents", Value::Bool(orphan));
        }
        (None, Some(propagation)) => {
            let name = match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            };
            map.insert("propagationPolicy", name.into());
        }
        (None, None) => {}
    }
    let mut conditions = Map::new();
    for (key, text) in [("uid", &options.uid), ("resourceVersion", &options.version)] {
        if let Some(text) = text {
            conditions.insert(key, Value::string(text));
        }
    }
    if !conditions.is_empty() {
        map.insert("preconditions", Value::Object(conditions));
    }
    if options.ignore_read_error {
        let key = "ignoreStoreReadErrorWithClusterBreakingPotential";
        map.insert(key, Value::Bool(true));
    }
}
