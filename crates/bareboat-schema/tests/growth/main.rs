//! Checks that the cost of a write grows linearly with its size: lists and maps of definitions, and those of custom
//! objects.

#![cfg(feature = "expressions")]

mod objects;

use bareboat_api::{Value, value};
use bareboat_schema::{SchemaCache, crd};
use std::time::{Duration, Instant};

/// The small size; the large one is eight times as large.
const FEW: usize = 250;
const MANY: usize = 8 * FEW;
/// Linear work takes eight times as long for the larger size, quadratic work 64 times.
const LIMIT: u32 = 20;
/// Quadratic work on the larger size takes longer than this.
const AT_ONCE: Duration = Duration::from_millis(12);
/// Shorter times are too close to the resolution of the clock.
const LEAST: Duration = Duration::from_micros(500);

/// Returns the CPU time of this thread, if known.
fn busy() -> Duration {
    // The kernel updates the counter when a thread yields.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let time = text
        .split_whitespace()
        .next()
        .and_then(|time| time.parse().ok());
    match time {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds),
        None => {
            static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
            START.elapsed()
        }
    }
}

/// Fails if the cost grows faster than the size; `make` returns the work on a size.
fn check<W: FnOnce()>(what: &str, few: usize, make: impl Fn(usize) -> W) {
    let cost = |count: usize| {
        let work = make(count);
        let begun = busy();
        work();
        busy() - begun
    };
    let many = few * (MANY / FEW);
    let mut best = (Duration::MAX, Duration::MAX);
    // A busy machine may be slow once, but not every time.
    for _ in 0..5 {
        best.1 = best.1.min(cost(many));
        if best.1 < AT_ONCE {
            return;
        }
        best.0 = best.0.min(cost(few));
        if best.1 < best.0.max(LEAST) * LIMIT {
            return;
        }
    }
    panic!("{what}: {few} take {:?}, {many} take {:?}", best.0, best.1);
}

/// Does what the server does with a definition that replaces another one.
fn write(mut crd: Value, old: Option<Value>) {
    crd::default(&mut crd);
    // A client wrote the status of the old one.
    if crd.get("status").is_none() {
        crd::prepare(&mut crd, old.as_ref());
    }
    let errors = crd::validate_create(&crd);
    let _: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let _ = crd::validate_update(&crd, old.as_ref().unwrap_or(&crd));
    let _ = crd::validate_status(&crd);
    let _ = crd::warnings(&crd, old.as_ref());
    let mut taken = crd::Taken::default();
    taken.add(&crd.at(&["spec", "names"]).cloned().unwrap_or_default());
    let _ = crd::reconcile(&crd, &taken, "now");
    let _ = crd::reconcile(&crd, &crd::Taken::default(), "now");
    let known = crd::Definition::parse(&crd);
    let cache = SchemaCache::new();
    let recommended = known.recommended();
    for (version, schema) in known.versions.iter().zip(crd::schemas_of(&crd)) {
        let _ = (known.deprecation_of(version, recommended), schema);
    }
    if let Some(version) = known.versions.first() {
        crd::compile(&crd, &version.name, &cache);
    }
    let _ = crd::Conversions::of(&crd, &cache);
}

fn list(count: usize, element: impl Fn(usize) -> Value) -> Value {
    (0..count).map(element).collect()
}

fn map(count: usize, element: impl Fn(usize) -> Value) -> Value {
    let members = (0..count).map(|number| (format!("e{number}"), element(number)));
    Value::Object(members.collect())
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().collect())
}

fn names(count: usize, letter: &str) -> Value {
    list(count, |n| value!(format!("{letter}{n}")))
}

fn text() -> Value {
    value!({"type": "string", "maxLength": 8})
}

/// Returns a definition whose only version has some members besides the usual ones.
fn definition(schema: Value, members: Vec<(&str, Value)>) -> Value {
    let mut version = value!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    for (key, value) in members {
        version.make_object().insert(key, value);
    }
    with_versions(value!([version]))
}

fn with_versions(versions: Value) -> Value {
    value!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": versions,
    }})
}

/// Returns a definition whose schema has properties below `spec`.
fn with_properties(properties: Value) -> Value {
    definition(
        whole(value!({"type": "object", "properties": properties})),
        vec![],
    )
}

fn whole(spec: Value) -> Value {
    value!({"type": "object", "properties": {"spec": spec}})
}

fn set(mut crd: Value, path: &[&str], value: Value) -> Value {
    let (last, above) = path.split_last().expect("a path has an end");
    let map = above
        .iter()
        .fold(crd.make_object(), |map, key| map.object_mut(key));
    map.insert(*last, value);
    crd
}

fn version(name: String, storage: bool) -> Value {
    let schema = whole(value!({"type": "object"}));
    value!({"name": name, "served": true, "storage": storage, "deprecated": true,
        "schema": {"openAPIV3Schema": schema}})
}

fn plain() -> Value {
    with_properties(value!({"a": {"type": "string"}}))
}

/// Returns a definition with two versions and conversions between them.
fn converting(forth: Value, back: Value, properties: Value) -> Value {
    let schema = || whole(value!({"type": "object", "properties": (properties.clone())}));
    let version = |name: &str, storage: bool| value!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": (schema())}});
    let crd = with_versions(value!([(version("v1", true)), (version("v2", false))]));
    let pair = |from: &str, to: &str, key: Value| {
        let mut pair = value!({"from": from, "to": to});
        if let Value::Object(members) = key {
            for (key, value) in members {
                pair.make_object().insert(key, value);
            }
        }
        pair
    };
    let text = value!([(pair("v1", "v2", forth)), (pair("v2", "v1", back))]).to_string();
    set(
        crd,
        &["metadata", "annotations", crd::CONVERSION_ANNOTATION],
        value!(text),
    )
}

/// The name of the case, the small size, and the old and the new definition of a size.
type Case<'a> = (&'a str, usize, Box<dyn Fn(usize) -> (Option<Value>, Value)>);

fn created<'a>(what: &'a str, few: usize, make: impl Fn(usize) -> Value + 'static) -> Case<'a> {
    (what, few, Box::new(move |count| (None, make(count))))
}

fn replaced<'a>(
    what: &'a str,
    few: usize,
    make: impl Fn(usize) -> (Value, Value) + 'static,
) -> Case<'a> {
    let both = move |count| {
        let (old, new) = make(count);
        (Some(old), new)
    };
    (what, few, Box::new(both))
}

fn check_all(cases: Vec<Case>) {
    for (what, few, make) in cases {
        check(what, few, |count| {
            let (old, new) = make(count);
            move || write(new, old)
        });
    }
}

#[test]
fn cost_grows_linearly_with_each_list_of_a_definition() {
    let accepted =
        |crd: Value, names: Value| set(crd, &["status", "acceptedNames", "shortNames"], names);
    let cases = vec![
        created("short names", FEW, |count| {
            set(plain(), &["spec", "names", "shortNames"], names(count, "s"))
        }),
        replaced("other short names", FEW, move |count| {
            let new = set(plain(), &["spec", "names", "shortNames"], names(count, "t"));
            (
                accepted(plain(), names(count, "s")),
                accepted(new, names(count, "s")),
            )
        }),
        created("invalid short names", FEW, |count| {
            set(plain(), &["spec", "names", "shortNames"], names(count, "-"))
        }),
        created("categories", FEW, |count| {
            set(plain(), &["spec", "names", "categories"], names(count, "c"))
        }),
        created("versions", FEW, |count| {
            with_versions(list(count, |n| version(format!("v{n}"), n == 0)))
        }),
        replaced("versions of both definitions", FEW, |count| {
            let all = || with_versions(list(count, |n| version(format!("v{n}"), n == 0)));
            (all(), all())
        }),
        created("versions with one name", FEW, |count| {
            with_versions(list(count, |_| version("v1".to_owned(), true)))
        }),
        created("versions and stored versions", FEW, |count| {
            let crd = with_versions(list(count, |n| version(format!("v{n}"), n == 0)));
            set(crd, &["status", "storedVersions"], names(count, "v"))
        }),
        created("storage versions that are not stored", FEW, |count| {
            let crd = with_versions(list(count, |n| version(format!("v{n}"), true)));
            set(crd, &["status", "storedVersions"], names(count, "w"))
        }),
        replaced("stored versions", FEW, |count| {
            (
                set(plain(), &["status", "storedVersions"], names(count, "v")),
                plain(),
            )
        }),
        created("conditions", FEW, |count| {
            let conditions = list(
                count,
                |n| value!({"type": (format!("T{n}")), "status": "True"}),
            );
            set(plain(), &["status", "conditions"], conditions)
        }),
        created("columns", FEW, |count| {
            let column = |n: usize| value!({"name": (format!("c{n}")), "type": "string", "jsonPath": (format!(".spec.e{n}"))});
            definition(
                whole(value!({"type": "object"})),
                vec![("additionalPrinterColumns", list(count, column))],
            )
        }),
        created("selectable fields", FEW, |count| {
            let properties = map(count, |_| text());
            let schema = whole(value!({"type": "object", "properties": properties}));
            let field = |n: usize| value!({"jsonPath": (format!(".spec.e{n}"))});
            definition(schema, vec![("selectableFields", list(count, field))])
        }),
        created("review versions", FEW, |count| {
            let conversion = value!({"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": "https://example.com/"}, "conversionReviewVersions": (names(count, "r")),
            }});
            set(plain(), &["spec", "conversion"], conversion)
        }),
    ];
    check_all(cases);
}

#[test]
fn cost_grows_linearly_with_each_part_of_a_schema() {
    let cases = vec![
        created("properties", FEW, |count| {
            with_properties(map(count, |_| text()))
        }),
        created("properties without types", FEW, |count| {
            with_properties(map(count, |_| value!({})))
        }),
        replaced("properties of both definitions", FEW, |count| {
            let all = |letter: &str| {
                let schema = value!({"type": "object", "format": letter, "properties": (map(count, |_| text()))});
                with_properties(value!({"a": schema}))
            };
            (all("x"), all("y"))
        }),
        created("required", FEW, |count| {
            let properties = map(count, |_| text());
            let schema = value!({"type": "object", "properties": properties, "required": (names(count, "e"))});
            with_properties(value!({"a": schema}))
        }),
        created("enum", FEW, |count| {
            with_properties(value!({"a": {"type": "string", "enum": (names(count, "e"))}}))
        }),
        created("formats", FEW, |count| {
            with_properties(map(
                count,
                |n| value!({"type": "string", "format": (format!("f{n}"))}),
            ))
        }),
        created("patterns", FEW, |count| {
            with_properties(map(
                count,
                |n| value!({"type": "string", "pattern": (format!("^a{n}$"))}),
            ))
        }),
        created("defaults", FEW, |count| {
            with_properties(map(count, |_| value!({"type": "string", "default": "a"})))
        }),
        created("one large default", FEW, |count| {
            let properties = map(count, |_| text());
            let default = map(count, |_| value!("a"));
            with_properties(
                value!({"a": {"type": "object", "properties": properties, "default": default}}),
            )
        }),
        created("keys of a list", FEW, |count| {
            let items = value!({"type": "object", "properties": (map(count, |_| text())), "required": (names(count, "e"))});
            with_properties(value!({"a": {"type": "array", "items": items,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": (names(count, "e"))}}))
        }),
        created("unknown keys of a list", FEW, |count| {
            let items = value!({"type": "object", "properties": {"a": {"type": "string"}}});
            with_properties(value!({"a": {"type": "array", "items": items,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": (names(count, "k"))}}))
        }),
        created("alternatives", FEW, |count| {
            let properties = map(count, |_| text());
            let branch = |n: usize| value!({"required": [(format!("e{n}"))]});
            with_properties(
                value!({"a": {"type": "object", "properties": properties, "anyOf": (list(count, branch))}}),
            )
        }),
        created("alternatives that are not structural", FEW, |count| {
            let branch = |n: usize| value!({"type": "object", "properties": {(format!("e{n}")): {"type": "string"}}});
            with_properties(value!({"a": {"type": "object", "oneOf": (list(count, branch))}}))
        }),
    ];
    check_all(cases);
}

#[test]
fn cost_grows_linearly_with_rules_and_conversions() {
    let rule = |n: usize| value!({"rule": (format!("self.e{n} != 'a{n}'")), "fieldPath": (format!(".e{n}"))});
    let ruled = move |count: usize, rules: Value| {
        let properties = map(count, |_| text());
        value!({"type": "object", "properties": properties, "x-kubernetes-validations": rules})
    };
    let moves = |count: usize, from: &str, to: &str| {
        let one = |n: usize| (format!("spec.{from}{n}"), value!(format!("spec.{to}{n}")));
        object_of((0..count).map(one))
    };
    let sets = |count: usize| {
        object_of((0..count).map(|n| (format!("spec.e{n}"), value!(format!("'a' + '{n}'")))))
    };
    let cases = vec![
        created("rules", 30, move |count| {
            with_properties(value!({"a": (ruled(count, list(count, rule)))}))
        }),
        created("rules on properties", 30, |count| {
            let one = |n: usize| {
                value!({"type": "string", "maxLength": 8,
                "x-kubernetes-validations": [{"rule": (format!("self != 'a{n}'"))}]})
            };
            with_properties(map(count, one))
        }),
        created("rules in an alternative", FEW, move |count| {
            let branch = ruled(count, list(count, rule));
            with_properties(value!({"a": {"type": "object", "anyOf": [branch]}}))
        }),
        created("moves", 60, move |count| {
            let properties = map(2 * count, |_| text());
            let (forth, back) = (moves(count, "e", "x"), moves(count, "x", "e"));
            converting(value!({"move": forth}), value!({"move": back}), properties)
        }),
        created("expressions", 30, move |count| {
            let properties = map(count, |_| text());
            converting(
                value!({"set": (sets(count))}),
                value!({"set": (sets(count))}),
                properties,
            )
        }),
        created("removes", 120, |count| {
            let properties = map(count, |_| text());
            converting(
                value!({"remove": (names(count, "spec.e"))}),
                value!({}),
                properties,
            )
        }),
        created("removes of one place", 120, |count| {
            let removes = list(count, |n| value!(format!("spec.e.e{}", n / 2)));
            converting(value!({"remove": removes}), value!({}), value!({}))
        }),
        created("pairs", 16, |count| {
            let crd = with_versions(list(count / 3, |n| version(format!("v{n}"), n == 0)));
            let pair = |n: usize| match n % 2 {
                0 => value!({"from": "v0", "to": (format!("v{}", n / 2 + 1))}),
                _ => value!({"from": (format!("v{}", n / 2 + 1)), "to": "v0"}),
            };
            let text = list(count, pair).to_string();
            set(
                crd,
                &["metadata", "annotations", crd::CONVERSION_ANNOTATION],
                value!(text),
            )
        }),
    ];
    check_all(cases);
}

fn object_of(members: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(members.collect())
}
