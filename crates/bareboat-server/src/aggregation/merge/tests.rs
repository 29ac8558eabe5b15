//! Merged OpenAPI documents keep definitions that differ apart.

use super::*;
use bareboat_api::{Str, value};
use std::sync::Arc;

#[test]
fn definitions_that_differ_get_another_name() {
    let base = value!({
        "paths": {"/apis/a.io/v1/": {}, "/apis/r.io/v1/local": {}},
        "definitions": {"Meta": {"type": "object"}, "Same": {"type": "string"}},
    });
    let remote = value!({
        "paths": {
            "/apis/r.io/v1/things": {"get": {"schema": {"$ref": "#/definitions/Thing"}}},
            "/apis/r.io/v2/things": {"get": {"schema": {"$ref": "#/definitions/Other"}}},
            "/apis/a.io/v1/": {"stolen": true},
        },
        "definitions": {
            "Thing": {"properties": {"m": {"$ref": "#/definitions/Meta"}, "s": {"$ref": "#/definitions/Same"}}},
            "Meta": {"type": "object", "description": "differs"},
            "Same": {"type": "string"},
            "Other": {},
        },
    });
    let remote = RemoteV2 {
        roots: vec!["/apis/r.io/v1".to_owned()],
        hash: Str::default(),
        document: Arc::new(remote),
    };
    let merged = merge_v2(base, &[remote]);
    assert_eq!(
        merged,
        value!({
            "paths": {
                "/apis/a.io/v1/": {},
                "/apis/r.io/v1/things": {"get": {"schema": {"$ref": "#/definitions/Thing"}}},
            },
            "definitions": {
                "Meta": {"type": "object"},
                "Meta_v2": {"type": "object", "description": "differs"},
                "Same": {"type": "string"},
                "Thing": {"properties": {
                    "m": {"$ref": "#/definitions/Meta_v2"}, "s": {"$ref": "#/definitions/Same"},
                }},
            },
        })
    );
}
