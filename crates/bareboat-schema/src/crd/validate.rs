//! Validation of a definition, for creations and updates.
//!
//! Rules that were added over time do not apply to a definition that violated them before.
//! Upstream: apiextensions pkg/apis/apiextensions/validation. Error paths follow upstream's
//! internal form: parts that all versions share are at `spec.validation` and so on.

use super::expressions::Expressions;
use super::keywords::{self, Strictness};
use super::parts::{
    check_column, check_deprecation, check_names, check_stored_versions, check_subresources,
};
use super::props::Props;
use super::selectable::check_selectable;
use super::{approval, conversion, convert, defaults, lists, patterns, structural};
use crate::Schema;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, interrupt, names};
use std::collections::{HashMap, HashSet};

/// Returns the errors in a new definition; the caller checks its metadata, except for the name.
pub fn validate_create(crd: &Value) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    let text = |path: &[&str]| crd.at(path).and_then(Value::as_str).unwrap_or("");
    let wanted = format!(
        "{}.{}",
        text(&["spec", "names", "plural"]),
        text(&["spec", "group"])
    );
    let name = text(&["metadata", "name"]);
    if name != wanted {
        errors.push(FieldError::invalid(
            FieldPath::new("metadata.name"),
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    Validator::new(crd, None).run(&mut errors);
    errors.into_list()
}

/// Returns the errors in a changed definition.
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    Validator::new(new, Some(old)).run(&mut errors);
    let spec = FieldPath::new("spec");
    let mut fixed = vec![
        (&["spec", "group"][..], spec.child("group")),
        (
            &["spec", "names", "plural"][..],
            spec.child("names").child("plural"),
        ),
    ];
    if super::is_condition_true(old, "Established") {
        fixed.push((&["spec", "scope"], spec.child("scope")));
        fixed.push((
            &["spec", "names", "kind"],
            spec.child("names").child("kind"),
        ));
    }
    for (keys, path) in fixed {
        if new.at(keys) != old.at(keys) {
            let value = new.at(keys).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(path, value, "field is immutable"));
        }
    }
    errors.into_list()
}

/// Returns the errors in a status that a client wrote.
pub fn validate_status(new: &Value) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    let path = FieldPath::new("status").child("acceptedNames");
    check_names(new.at(&["status", "acceptedNames"]), &path, &mut errors);
    errors.into_list()
}

pub(super) fn versions(crd: &Value) -> &[Value] {
    crd.at(&["spec", "versions"])
        .and_then(Value::as_array)
        .unwrap_or(&[])
}

fn any_schema(crd: &Value, test: impl Fn(Props<'_>) -> bool) -> bool {
    versions(crd).iter().filter_map(Props::of_version).any(test)
}

struct Validator<'a> {
    crd: &'a Value,
    old: Option<&'a Value>,
    strictness: Strictness,
    require_schema: bool,
    require_structural: bool,
    require_pruned: bool,
    /// The schemas of versions that have a status.
    with_status: HashSet<Vec<u8>>,
    old_versions: HashMap<&'a str, &'a Value>,
}

impl<'a> Validator<'a> {
    fn new(crd: &'a Value, old: Option<&'a Value>) -> Validator<'a> {
        let root = FieldPath::root();
        let never =
            |test: &dyn Fn(Props<'_>) -> bool| !old.is_some_and(|old| any_schema(old, test));
        let had_schemas =
            old.is_none_or(|old| versions(old).iter().all(|v| Props::of_version(v).is_some()));
        let with_status = versions(crd).iter().filter_map(|version| {
            let status = version.at(&["subresources", "status"])?;
            let schema = version.at(&["schema", "openAPIV3Schema"])?;
            (!status.is_null()).then(|| schema.to_json())
        });
        // Of two versions with the same name the first counts.
        let old_versions = old.map_or(&[][..], versions).iter().rev();
        let old_versions = old_versions
            .filter_map(|version| Some((version.get("name")?.as_str()?, version)))
            .collect();
        Validator {
            crd,
            old,
            with_status: with_status.collect(),
            old_versions,
            strictness: Strictness {
                valid_types: never(&|schema| keywords::has_invalid_type(schema)),
                atomic_sets: never(&|schema| {
                    schema.any(&mut |props| lists::non_atomic_set(props, &root).is_some())
                }),
                map_keys: never(&|schema| {
                    schema.any(&mut |props| !lists::map_and_set_items(props, &root).is_empty())
                }),
            },
            require_schema: had_schemas,
            require_structural: never(&|schema| {
                structural::unsupported(schema).is_some()
                    || !structural::violations(schema, &root).is_empty()
            }),
            require_pruned: never(&|schema| {
                let whole = Value::Object(schema.0.clone());
                structural::unsupported(schema).is_none()
                    && structural::violations(schema, &root).is_empty()
                    && Schema::parse(&whole)
                        .is_ok_and(|compiled| defaults::has_unpruned(schema, &compiled.root))
            }),
        }
    }

    fn run(&self, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        let nothing = Value::object();
        let spec = self.crd.get("spec").unwrap_or(&nothing);
        self.check_group_and_scope(spec, &path, errors);
        if let Err(error) = patterns::check(self.crd) {
            // No other check may use patterns that are too large.
            return errors.push(error);
        }
        let preserve = spec
            .get("preserveUnknownFields")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        self.check_versions(preserve, &path, errors);
        if errors.is_empty() {
            // Expressions can only be checked with valid schemas.
            convert::check(self.crd, self.old, errors);
        }
        for key in ["plural", "singular", "kind", "listKind"] {
            let name = spec.at(&["names", key]).and_then(Value::as_str);
            if name.is_none_or(str::is_empty) {
                errors.push(FieldError::required(path.child("names").child(key), ""));
            }
        }
        let before = errors.len();
        check_names(spec.get("names"), &path.child("names"), errors);
        let named_well = errors.len() == before;
        self.check_conversion(spec, preserve, &path.child("conversion"), errors);
        // Accepted names equal those of the spec, and are not checked a second time.
        let of_status = validate_status(self.crd).into_iter();
        let about_names =
            |error: &FieldError| error.path.as_str().starts_with("status.acceptedNames");
        errors.extend(of_status.filter(|error| named_well || !about_names(error)));
        check_stored_versions(self.crd, errors);
        approval::check(self.crd, self.old, errors);
        let kept = self.old.is_some_and(|old| {
            old.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true))
        });
        if preserve && !kept {
            errors.push(FieldError::invalid(
                path.child("preserveUnknownFields"),
                true,
                "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                 spec.versions[*].schema instead",
            ));
        }
    }

    fn check_group_and_scope(&self, spec: &Value, path: &FieldPath, errors: &mut FieldErrors) {
        let group = spec.get("group").and_then(Value::as_str).unwrap_or("");
        let at = path.child("group");
        let problems = names::dns1123_subdomain(group);
        if group.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !problems.is_empty() {
            errors.push(FieldError::invalid(at, group, problems.join(",")));
        } else if !group.contains('.') {
            let detail = "should be a domain with at least one dot";
            errors.push(FieldError::invalid(at, group, detail));
        }
        let at = path.child("scope");
        match spec.get("scope").and_then(Value::as_str).unwrap_or("") {
            "" => errors.push(FieldError::required(at, "")),
            "Cluster" | "Namespaced" => {}
            other => errors.push(FieldError::not_supported(
                at,
                other,
                ["Cluster", "Namespaced"],
            )),
        }
    }

    fn check_versions(&self, preserve: bool, path: &FieldPath, errors: &mut FieldErrors) {
        let versions = versions(self.crd);
        let at = path.child("versions");
        self.check_schemas_exist(versions, preserve, &at, errors);
        let has_defaults = any_schema(self.crd, |schema| {
            schema.any(&mut |props| props.default().is_some())
        });
        if has_defaults && preserve {
            errors.push(FieldError::invalid(
                path.child("preserveUnknownFields"),
                true,
                "must be false in order to use defaults in the schema",
            ));
        }
        let has_extensions = any_schema(self.crd, |schema| {
            schema.any(&mut |props| props.0.keys().any(|key| key.starts_with("x-kubernetes-")))
        });
        let structural = self.require_structural || !preserve || has_defaults || has_extensions;

        let mut seen = HashSet::new();
        let mut unique = true;
        let mut stored = 0;
        for (index, version) in versions.iter().enumerate() {
            let at = at.index(index);
            let name = version.get("name").and_then(Value::as_str).unwrap_or("");
            unique &= seen.insert(name);
            stored += usize::from(version.get("storage").and_then(Value::as_bool) == Some(true));
            let problems = names::dns1035_label(name);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(
                    at.child("name"),
                    name,
                    problems.join(","),
                ));
            }
            // The first version is also `spec.version` of the internal form.
            if index == 0 && !name.is_empty() && !problems.is_empty() {
                let at = path.child("version");
                errors.push(FieldError::invalid(at, name, problems.join(",")));
            }
            check_deprecation(version, &at, errors);
        }
        self.check_parts(versions, structural, path, errors);
        let given = || {
            let versions = self.crd.at(&["spec", "versions"]);
            versions.cloned().unwrap_or_default()
        };
        if !unique {
            let detail = "must contain unique version names";
            errors.push(FieldError::invalid(at.clone(), given(), detail));
        }
        if stored != 1 {
            let detail = "must have exactly one version marked as storage version";
            errors.push(FieldError::invalid(at, given(), detail));
        }
    }

    fn check_schemas_exist(
        &self,
        versions: &[Value],
        preserve: bool,
        at: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        for (index, version) in versions.iter().enumerate() {
            if Props::of_version(version).is_some() {
                continue;
            }
            let served = version.get("served").and_then(Value::as_bool) == Some(true);
            let path = at.index(index).child("schema").child("openAPIV3Schema");
            if self.require_schema {
                errors.push(FieldError::required(path, ""));
            } else if !preserve && served {
                let detail = "because otherwise all fields are pruned";
                errors.push(FieldError::required(path, detail));
            }
        }
    }

    /// Checks schema, subresources, columns and selectable fields: once if all versions agree.
    fn check_parts(
        &self,
        versions: &[Value],
        structural: bool,
        path: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        let parts = [
            ("schema", "validation"),
            ("subresources", "subresources"),
            ("additionalPrinterColumns", "additionalPrinterColumns"),
            ("selectableFields", "selectableFields"),
        ];
        for (key, shared_key) in parts {
            let shared = versions
                .windows(2)
                .all(|pair| pair[0].get(key) == pair[1].get(key));
            for (index, version) in versions.iter().enumerate() {
                let at = if shared {
                    path.child(shared_key)
                } else {
                    path.child("versions").index(index).child(key)
                };
                self.check_part(key, version, structural, &at, errors);
                if shared {
                    break;
                }
            }
        }
    }

    fn check_part(
        &self,
        key: &str,
        version: &Value,
        structural: bool,
        at: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        if interrupt::requested() {
            return;
        }
        match key {
            "schema" => self.check_schema(version, structural, at, errors),
            "subresources" => check_subresources(version.get(key), at, errors),
            "additionalPrinterColumns" => {
                let columns = version.get(key).and_then(Value::as_array).unwrap_or(&[]);
                for (index, column) in columns.iter().enumerate() {
                    check_column(column, &at.index(index), errors);
                }
            }
            _ => {
                let name = version.get("name").and_then(Value::as_str).unwrap_or("");
                check_selectable(version, self.old_version(name), at, errors);
            }
        }
    }

    fn check_schema(
        &self,
        version: &Value,
        structural: bool,
        at: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else {
            return;
        };
        let Some(props) = Props::of(schema) else {
            return;
        };
        let at = at.child("openAPIV3Schema");
        let start = errors.len();
        if self.with_status.contains(&schema.to_json()) {
            errors.extend(keywords::root_with_status(props, &at));
        }
        if props.truth("nullable") {
            errors.push(FieldError::forbidden(
                at.child("nullable"),
                "nullable cannot be true at the root",
            ));
        }
        let mut unsupported = None;
        let mut compiled = None;
        if structural {
            let problem = structural::unsupported(props);
            match (problem, Schema::parse(schema)) {
                (Some(problem), _) => unsupported = Some(problem),
                (None, Err(problem)) => unsupported = Some(problem.to_string()),
                (None, Ok(schema)) => {
                    let mut found = structural::violations(props, &at);
                    if found.is_empty() {
                        found = defaults::check(props, &schema.root, &at, self.require_pruned);
                    }
                    if found.is_empty() {
                        compiled = Some(schema);
                    }
                    errors.extend(found);
                }
            }
        }
        let name = version.get("name").and_then(Value::as_str).unwrap_or("");
        let unchanged = self
            .old_version(name)
            .is_some_and(|old| old.get("schema") == version.get("schema"));
        if let Some(schema) = compiled.as_ref().filter(|_| !unchanged)
            && let Err(why) = schema.default(&mut Value::object())
        {
            errors.push(FieldError::invalid(at.clone(), "", why.to_string()));
        }
        let mut expressions = Expressions::new(!unchanged);
        let root = compiled.as_ref().map(|schema| &*schema.root);
        errors.extend(keywords::check(
            props,
            &at,
            self.strictness,
            root,
            &mut expressions,
        ));
        if errors.len() == start
            && let Some(problem) = unsupported
        {
            errors.push(FieldError::invalid(at.clone(), "", problem));
        }
        expressions.check_total(&at, errors);
    }

    fn old_version(&self, name: &str) -> Option<&'a Value> {
        self.old_versions.get(name).copied()
    }

    fn check_conversion(
        &self,
        spec: &Value,
        preserve: bool,
        at: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        let Some(conversion) = spec.get("conversion").filter(|value| !value.is_null()) else {
            return;
        };
        let strategy = conversion
            .get("strategy")
            .and_then(Value::as_str)
            .unwrap_or("");
        if strategy != "None" && preserve {
            errors.push(FieldError::invalid(
                at.child("strategy"),
                strategy,
                "must be None if spec.preserveUnknownFields is true",
            ));
        }
        let require_known = self.old.is_none_or(|old| {
            let reviews = old
                .at(&["spec", "conversion", "webhook", "conversionReviewVersions"])
                .and_then(Value::as_array)
                .unwrap_or(&[]);
            conversion::has_known_review(reviews)
        });
        let allow_invalid_bundle = self.old.is_none_or(|old| {
            !super::is_condition_true(old, "Established") || !conversion::bundle_is_valid(old)
        });
        conversion::check(conversion, at, require_known, allow_invalid_bundle, errors);
    }
}
