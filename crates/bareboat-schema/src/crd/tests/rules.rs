//! Tests of the validation of definitions, with its messages.

use super::*;

#[test]
fn names_groups_scopes_and_versions_are_checked() {
    check(&[], &[]);
    check(
        &[("metadata.name", "wrong.example.com")],
        &[
            r#"metadata.name: Invalid value: "wrong.example.com": must be spec.names.plural+"."+spec.group"#,
        ],
    );
    check(
        &[("spec.scope", "Global")],
        &[r#"spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced""#],
    );
    check(&[("spec.scope", "-")], &["spec.scope: Required value"]);
    check(
        &[("spec.group", "local"), ("metadata.name", "gadgets.local")],
        &[r#"spec.group: Invalid value: "local": should be a domain with at least one dot"#],
    );
    check(
        &[("spec.names.listKind", "Gadget")],
        &[r#"spec.names.listKind: Invalid value: "Gadget": kind and listKind may not be the same"#],
    );
    check(
        &[(
            "spec.versions",
            "[{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]",
        )],
        &[
            r#"spec.versions: Invalid value: [{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":false}]: must have exactly one version marked as storage version"#,
        ],
    );
    check(
        &[(
            "spec.versions",
            "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]",
        )],
        &[
            r#"spec.versions: Invalid value: [{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true},{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":false}]: must contain unique version names"#,
        ],
    );
    check(
        &[(&format!("{V}schema"), "-")],
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    check(
        &[(&format!("{V}deprecationWarning"), "careful")],
        &[
            r#"spec.versions[0].deprecationWarning: Invalid value: "careful": can only be set for deprecated versions"#,
        ],
    );
    check(
        &[("spec.preserveUnknownFields", "true")],
        &[
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ],
    );
    check(
        &[("status.storedVersions", "[v0, v1]")],
        &[
            r#"status.storedVersions[0]: Invalid value: "v0": missing from spec.versions; v0 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v0 and removes v0 from status.storedVersions"#,
        ],
    );
}

#[test]
fn columns_scale_paths_and_selectable_fields_are_checked() {
    check(
        &[(
            &format!("{V}additionalPrinterColumns"),
            "[{name: Num, type: text, jsonPath: spec.n, format: odd}]",
        )],
        &[
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.n": must be a simple json path starting with ."#,
            r#"spec.additionalPrinterColumns[0].format: Invalid value: "odd": must be one of byte,date,date-time,double,float,int32,int64,password"#,
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string"#,
        ],
    );
    check(
        &[(
            &format!("{V}subresources.scale"),
            "{specReplicasPath: .status.n}",
        )],
        &[
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec"#,
            "spec.subresources.scale.statusReplicasPath: Required value",
        ],
    );
    check(
        &[(
            &format!("{V}selectableFields"),
            "[{jsonPath: .spec}, {jsonPath: '.spec[0]'}, {jsonPath: .spec.nope}]",
        )],
        &[
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#,
            r#"spec.selectableFields[1].jsonPath: Invalid value: ".spec[0]": is an invalid path: array notation is not allowed"#,
            r#"spec.selectableFields[2].jsonPath: Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field"#,
        ],
    );
}

#[test]
fn conversion_webhooks_are_checked() {
    check(
        &[("spec.conversion", "{strategy: Webhook}")],
        &[
            "spec.conversion.conversionReviewVersions: Required value",
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ],
    );
    check(
        &[(
            "spec.conversion",
            "{strategy: Webhook, webhook: {conversionReviewVersions: [v2, v2], clientConfig: {url: 'http://a@b/?q#f'}}}",
        )],
        &[
            r#"spec.conversion.conversionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1"#,
            r#"spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "a": user information is not permitted in the URL"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "f": fragments are not permitted in the URL"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#,
            r#"spec.conversion.webhookClientConfig.url: Invalid value: "q": query parameters are not permitted in the URL"#,
        ],
    );
    check(
        &[(
            "spec.conversion",
            "{strategy: None, webhook: {conversionReviewVersions: [v1]}}",
        )],
        &[
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ],
    );
    check(
        &[(
            "spec.conversion",
            "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: bm9uc2Vuc2U=, service: {namespace: a, name: b, port: 443}}}}",
        )],
        &[],
    );
}

#[test]
fn schemas_must_be_structural() {
    check_schema(
        "{}",
        &[&format!(
            "{S}.type: Required value: must not be empty at the root"
        )],
    );
    check_schema(
        "{type: object, properties: {a: {}, b: {type: array}, c: {type: array, items: {}}}}",
        &[
            &format!(
                "{S}.properties[a].type: Required value: must not be empty for specified object fields"
            ),
            &format!("{S}.properties[b].items: Required value: must be specified"),
            &format!(
                "{S}.properties[c].items.type: Required value: must not be empty for specified array items"
            ),
        ],
    );
    check_schema(
        "{type: object, anyOf: [{properties: {x: {type: string}}, description: d}]}",
        &[
            &format!("{S}.anyOf[0].description: Forbidden: must be empty to be structural"),
            &format!("{S}.anyOf[0].properties[x].type: Forbidden: must be empty to be structural"),
            &format!(
                "{S}.properties[x]: Required value: because it is defined in \
                 {S}.anyOf[0].properties[x]"
            ),
        ],
    );
    check_schema(
        "{type: object, properties: {p: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}",
        &[],
    );
    check_schema(
        "{type: object, properties: {metadata: {type: object, properties: {labels: {type: object}}}, kind: {type: integer}}}",
        &[
            &format!(r#"{S}.properties[kind].type: Invalid value: "integer": must be string"#),
            &format!(
                "{S}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
            ),
        ],
    );
    check_schema(
        "{type: object, additionalProperties: {type: string}}",
        &[&format!(
            "{S}.additionalProperties: Forbidden: must not be used at the root"
        )],
    );
    check_schema(
        "{type: object, properties: {a: {type: string, pattern: '('}}}",
        &[&format!(
            "{S}.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"
        )],
    );
}

#[test]
fn misplaced_keywords_are_refused() {
    for (schema, expected) in [
        (
            "{type: object, nullable: true}",
            "nullable: Forbidden: nullable cannot be true at the root",
        ),
        (
            "{type: object, properties: {a: {type: string, id: x}}}",
            "properties[a].id: Forbidden: id is not supported",
        ),
        (
            "{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}",
            "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            "{type: object, properties: {a: {type: thing}}}",
            r#"properties[a].type: Unsupported value: "thing": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            "{type: object, properties: {a: {type: object, properties: {b: {type: string}}, additionalProperties: {type: string}}}}",
            "properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            "{type: object, properties: {a: {type: string, x-kubernetes-list-type: set}}}",
            r#"properties[a].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
        ),
        (
            "{type: object, properties: {a: {type: array, x-kubernetes-list-type: bag, items: {type: string}}}}",
            r#"properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#,
        ),
        (
            "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object, properties: {b: {type: string}}}}}}",
            "properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (
            "{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}}}",
            "properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            "{type: object, properties: {metadata: {type: object, properties: {name: {type: string, default: x}}}}}",
            "properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
        ),
        (
            "{type: object, properties: {a: {type: integer, default: x}}}",
            r#"properties[a].default: Invalid value: "string":  in body must be of type integer: "string""#,
        ),
        (
            "{type: object, properties: {a: {type: object, default: {b: 1}}}}",
            r#"properties[a].default: Invalid value: {"b":1}: must not have unknown fields"#,
        ),
        (
            "{type: object, properties: {a: {type: object, default: {}, required: [b], properties: {b: {type: string}}}}}",
            "properties[a].default.b: Required value",
        ),
        (
            "{type: object, properties: {a: {type: integer, default: 1, x-kubernetes-validations: [{rule: self > 1}]}}}",
            "properties[a].default: Invalid value: 1: failed rule: self > 1",
        ),
    ] {
        check_schema(schema, &[&format!("{S}.{expected}")]);
    }
    let mut crd =
        gadgets("{type: object, oneOf: [{required: [spec]}], properties: {spec: {type: object}}}");
    set(&mut crd, "spec.versions.0.subresources.status", "{}");
    let found = lines(&validate_create(&crd));
    assert!(
        found[0].contains(
            "fields are allowed at the root of the schema if the status subresource is enabled"
        ),
        "{found:?}"
    );
}

#[test]
fn expressions_must_compile_and_be_cheap() {
    let rules = |place: &str, rule: &str| {
        format!(
            "{{type: object, properties: {{spec: {{type: object, properties: {{{place}}}, x-kubernetes-validations: [{rule}]}}}}}}"
        )
    };
    let at = format!("{S}.properties[spec].x-kubernetes-validations[0]");
    check_schema(&rules("a: {type: string}", "{rule: self.a == 'x'}"), &[]);
    check_schema(
        &rules("a: {type: string}", "{rule: ''}"),
        &[&format!("{at}.rule: Required value: rule is not specified")],
    );
    check_schema(
        &rules("a: {type: string}", "{rule: self.a}"),
        &[&format!(
            r#"{at}.rule: Invalid value: {{"rule":"self.a"}}: cel expression must evaluate to a bool"#
        )],
    );
    check_schema(
        &rules("a: {type: string}", "{rule: self.b == 'x'}"),
        &[&format!(
            "{at}.rule: Invalid value: {{\"rule\":\"self.b == 'x'\"}}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 'x'\n | ....^"
        )],
    );
    check_schema(
        &rules(
            "a: {type: string}",
            "{rule: self.a == 'x', messageExpression: '1'}",
        ),
        &[&format!(
            r#"{at}.messageExpression: Invalid value: {{"messageExpression":"1","rule":"self.a == 'x'"}}: messageExpression must evaluate to a string"#
        )],
    );
    check_schema(
        &rules(
            "a: {type: string}",
            "{rule: self.a == 'x', fieldPath: .b, reason: Because}",
        ),
        &[
            &format!(r#"{at}.fieldPath: Invalid value: ".b": must be a valid path"#),
            &format!(
                r#"{at}.reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#
            ),
        ],
    );
    check_schema(
        &rules(
            "a: {type: string}",
            "{rule: self.a == 'x', optionalOldSelf: true}",
        ),
        &[&format!(
            "{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        )],
    );
    check_schema(
        "{type: object, properties: {l: {type: array, maxItems: 3, items: {type: string, maxLength: 3, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}",
        &[&format!(
            "{S}.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within {S}.properties[l]"
        )],
    );
    let found = lines(&validate_create(&gadgets(&rules(
        "a: {type: array, items: {type: string}}",
        "{rule: 'self.a.all(x, self.a.all(y, x == y))'}",
    ))));
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found.iter().any(|line| line.starts_with(&format!(
        "{at}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try"
    ))));
    check_schema(
        &rules(
            "a: {type: array, maxItems: 10, items: {type: string, maxLength: 10}}",
            "{rule: 'self.a.all(x, self.a.all(y, x == y))'}",
        ),
        &[],
    );
}

#[test]
fn errors_about_many_wrong_list_keys_are_limited() {
    let keys = vec!["k"; 5000].join(", ");
    let schema = format!(
        "{{type: object, properties: {{l: {{type: array, x-kubernetes-list-type: map, \
         x-kubernetes-list-map-keys: [{keys}], items: {{type: object, required: [k], properties: {{k: {{type: string}}}}}}}}}}}}"
    );
    let errors = validate_create(&gadgets(&schema));
    assert!((1..=16).contains(&errors.len()), "{}", errors.len());
}

#[test]
fn patterns_and_defaults_that_multiply_are_refused() {
    let properties: Vec<String> = (0..2000)
        .map(|n| format!("p{n}: {{type: string, pattern: '{n}a{{1000}}'}}"))
        .collect();
    let schema = format!(
        "{{type: object, properties: {{{}}}}}",
        properties.join(", ")
    );
    let errors = lines(&validate_create(&gadgets(&schema)));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("the patterns of this definition are too large"),
        "{errors:?}"
    );
    let list = format!("[{}]", vec!["{}"; 30].join(","));
    let schema = (0..7).fold("{type: object}".to_owned(), |inner, _| {
        format!(
            "{{type: object, properties: {{l: {{type: array, default: {list}, items: {inner}}}}}}}"
        )
    });
    let errors = lines(&validate_create(&gadgets(&schema)));
    assert!(
        errors
            .iter()
            .any(|error| error.contains("the defaults of its schema add more than")),
        "{errors:?}"
    );
}

#[test]
fn rules_at_many_levels_above_many_members_are_refused() {
    let members: Vec<String> = (0..8000)
        .map(|n| format!("m{n}: {{type: integer}}"))
        .collect();
    let leaf = format!("{{type: object, properties: {{{}}}}}", members.join(", "));
    let schema = |levels: usize| {
        (0..levels).fold(leaf.clone(), |inner, _| {
            format!("{{type: object, x-kubernetes-validations: [{{rule: 'true'}}], properties: {{a: {inner}}}}}")
        })
    };
    assert_eq!(lines(&validate_create(&gadgets(&schema(4)))), [""; 0]);
    let errors = lines(&validate_create(&gadgets(&schema(70))));
    assert!(
        errors
            .iter()
            .any(|error| error.contains("stand above too many others")),
        "{:?}",
        errors.first()
    );
}
