//! Tests of the host interface: declared types over data, optional old values, authorizers, objects
//! that expressions build, variables computed when read, budgets.

#![allow(clippy::unwrap_used)]

mod support;

use std::cell::Cell;
use std::sync::Arc;

use bareboat_api::{Value, value};
use bareboat_cel::{
    AccessCheck, AccessDecision, Activation, Authorizer, Budget, DeclType, Env, EvalError, Field,
    NoHints, ObjectType, SizeHints, Type, Val, Variables, estimate_cost,
};
use support::Schema;

fn eval<'a>(
    program: &'a bareboat_cel::Program,
    variables: &Variables<'a>,
) -> Result<Val<'a>, EvalError> {
    program.eval(variables, &mut Budget::new(10_000_000))
}

#[test]
fn the_root_of_a_resource_shows_its_type_and_name() {
    let schema = Schema::new(&value!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    }));
    let decl = DeclType::from_schema(&schema, true, "Widget").unwrap();
    let env = Env::kubernetes().declare("self", &decl);
    let data = value!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"n": 1}
    });
    for (expr, expected) in [
        ("self.metadata.name == 'a' && self.kind == 'Widget'", true),
        ("has(self.metadata.generateName)", false),
        ("self.spec.n == 1", true),
    ] {
        let program = env.program(&env.compile(expr).unwrap()).unwrap();
        let variables = Variables::new().bind("self", Val::of(&data, &decl));
        assert_eq!(
            eval(&program, &variables).unwrap().as_bool(),
            Some(expected),
            "{expr}"
        );
    }
    let issues = env.compile("self.metadata.labels.x == 'y'").unwrap_err();
    assert!(
        issues.to_string().contains("undefined field 'labels'"),
        "{issues}"
    );
}

#[test]
fn an_optional_old_value_may_be_absent() {
    let decl = DeclType::int();
    let env = Env::kubernetes()
        .declare("self", &decl)
        .variable("oldSelf", Type::optional(Type::Int));
    let checked = env.compile("oldSelf.orValue(0) <= self").unwrap();
    assert!(checked.uses("oldSelf"));
    assert_eq!(checked.variables(), ["oldSelf", "self"]);
    let program = env.program(&checked).unwrap();
    let data = Value::Int(3);
    for (old, expected) in [
        (Val::Optional(None), true),
        (Val::some(Val::Int(3)), true),
        (Val::some(Val::Int(4)), false),
    ] {
        let variables = Variables::new()
            .bind("self", Val::of(&data, &decl))
            .bind("oldSelf", old);
        assert_eq!(
            eval(&program, &variables).unwrap().as_bool(),
            Some(expected)
        );
    }
}

#[test]
fn lists_of_sets_and_maps_are_equal_in_any_order() {
    let schema = Schema::new(&value!({
        "type": "object",
        "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
            }
        }
    }));
    let decl = DeclType::from_schema(&schema, false, "self").unwrap();
    let old = value!({"set": ["a", "b"], "list": ["a", "b"], "map": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]});
    let new = value!({"set": ["b", "a"], "list": ["b", "a"], "map": [{"k": "y", "v": 2}, {"k": "x", "v": 1}]});
    let env = Env::kubernetes()
        .declare("self", &decl)
        .declare("oldSelf", &decl);
    for (expr, expected) in [
        ("self.set == oldSelf.set", true),
        ("self.list == oldSelf.list", false),
        ("self.map == oldSelf.map", true),
        ("self.set + ['c', 'a'] == ['a', 'b', 'c']", true),
        ("(self.map + [oldSelf.map[0]]).size() == 2", true),
        ("self == oldSelf", false),
    ] {
        let program = env.program(&env.compile(expr).unwrap()).unwrap();
        let variables = Variables::new()
            .bind("self", Val::of(&new, &decl))
            .bind("oldSelf", Val::of(&old, &decl));
        assert_eq!(
            eval(&program, &variables).unwrap().as_bool(),
            Some(expected),
            "{expr}"
        );
    }
}

/// Allows every action on pods, except for the service account `ns/robot`.
struct Pods;

impl Authorizer for Pods {
    fn authorize(&self, check: &AccessCheck) -> AccessDecision {
        let robot = check.service_account == Some(("ns".into(), "robot".into()));
        AccessDecision {
            allowed: (&*check.resource == "pods" || check.path.as_deref() == Some("/healthz"))
                && !robot,
            reason: format!("{} {}/{}", check.verb, check.namespace, check.name).into(),
            error: (&*check.verb == "fail").then(|| "broken".into()),
        }
    }
}

#[test]
fn expressions_use_the_authorizer() {
    let env = Env::kubernetes().variable(
        "authorizer",
        Type::message("kubernetes.authorization.Authorizer"),
    );
    for (expr, expected) in [
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            true,
        ),
        (
            "authorizer.group('apps').resource('deployments').check('get').allowed()",
            false,
        ),
        ("authorizer.path('/healthz').check('get').allowed()", true),
        (
            "authorizer.serviceAccount('ns', 'robot').group('').resource('pods').check('get').allowed()",
            false,
        ),
        (
            "authorizer.group('').resource('pods').namespace('a').name('b').check('get').reason() == 'get a/b'",
            true,
        ),
        (
            "authorizer.group('').resource('pods').subresource('log').check('fail').errored()",
            true,
        ),
        (
            "authorizer.group('').resource('pods').check('fail').error() == 'broken'",
            true,
        ),
        (
            "authorizer.group('').resource('pods').labelSelector('a=b').fieldSelector('c=d').check('list').allowed()",
            true,
        ),
    ] {
        let checked = env.compile(expr).unwrap();
        assert!(estimate_cost(&env, &checked, &NoHints).max >= 350_000);
        let program = env.program(&checked).unwrap();
        let variables = Variables::new().bind("authorizer", Val::authorizer(Arc::new(Pods)));
        let mut budget = Budget::new(10_000_000);
        let value = program.eval(&variables, &mut budget).unwrap();
        assert_eq!(value.as_bool(), Some(expected), "{expr}");
        assert!(budget.last_cost() >= 350_000);
    }
    let program = env.program(
        &env.compile("authorizer.path(' ').check('get').allowed()")
            .unwrap(),
    );
    let program = program.unwrap();
    let variables = Variables::new().bind("authorizer", Val::authorizer(Arc::new(Pods)));
    let error = eval(&program, &variables).unwrap_err();
    assert_eq!(error.to_string(), "path must not be empty");
}

#[test]
fn expressions_build_objects() {
    let spec = Arc::new(ObjectType::open("Object.spec", Vec::new()));
    let decl = DeclType::object(ObjectType::open("Object.spec", Vec::new()));
    let fields = Field::new("spec", decl).into_iter().collect();
    let env = Env::mutating()
        .object_type(Arc::new(ObjectType::new("Object", fields)))
        .object_type(spec);
    let checked = env
        .compile("Object{spec: Object.spec{replicas: 1 + 2, ?paused: optional.none(), path: jsonpatch.escapeKey('a/b~c')}}")
        .unwrap();
    assert_eq!(checked.result_type().name(), "Object");
    let program = env.program(&checked).unwrap();
    let built = eval(&program, &Variables::new())
        .unwrap()
        .to_json()
        .unwrap();
    assert_eq!(built, value!({"spec": {"replicas": 3, "path": "a~1b~0c"}}));
    let issues = env.compile("Object{zzz: 1}").unwrap_err();
    assert!(
        issues.to_string().contains("undefined field 'zzz'"),
        "{issues}"
    );
}

/// Counts how often its variable is read.
struct Counting(Cell<u32>);

impl<'a> Activation<'a> for Counting {
    fn resolve(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
        (name == "variables.x").then(|| {
            self.0.set(self.0.get() + 1);
            Ok(Val::Int(1))
        })
    }
}

#[test]
fn variables_are_computed_only_when_read() {
    let env = Env::kubernetes()
        .variable("variables.x", Type::Int)
        .variable("flag", Type::Bool);
    let program = env
        .program(&env.compile("false && variables.x == 1").unwrap())
        .unwrap();
    let counting = Counting(Cell::new(0));
    let value = program.eval(&counting, &mut Budget::new(100)).unwrap();
    assert_eq!((value.as_bool(), counting.0.get()), (Some(false), 0));
    let program = env
        .program(&env.compile("variables.x + variables.x == 2").unwrap())
        .unwrap();
    assert!(program.uses("variables.x") && !program.uses("flag"));
    let value = program.eval(&counting, &mut Budget::new(100)).unwrap();
    assert_eq!((value.as_bool(), counting.0.get()), (Some(true), 2));
}

#[test]
fn evaluation_stops_when_the_budget_is_spent() {
    let decl = DeclType::list(DeclType::int(), 1000);
    let env = Env::kubernetes().declare("self", &decl);
    let checked = env
        .compile("self.all(x, self.all(y, x != y + 1000))")
        .unwrap();
    let program = env.program(&checked).unwrap();
    let data: Value = (0..300_i64).collect();
    let variables = Variables::new().bind("self", Val::of(&data, &decl));
    let mut budget = Budget::new(10_000);
    assert_eq!(
        program.eval(&variables, &mut budget).unwrap_err(),
        EvalError::OutOfBudget
    );
    assert_eq!(budget.remaining(), 0);
    let mut budget = Budget::new(10_000_000);
    assert_eq!(
        program.eval(&variables, &mut budget).unwrap().as_bool(),
        Some(true)
    );
    assert_eq!(budget.remaining(), 10_000_000 - budget.last_cost());
    assert!(budget.last_cost() <= estimate_cost(&env, &checked, &*decl).max);
    let program = env
        .program(&env.compile("lists.range(1000000000).size() > 0").unwrap())
        .unwrap();
    let mut budget = Budget::new(u64::MAX);
    assert_eq!(
        program.eval(&variables, &mut budget).unwrap_err(),
        EvalError::OutOfBudget
    );
}

/// Size limits by the name of the variable.
struct Named;

impl SizeHints for Named {
    fn max_size(&self, path: &[bareboat_api::Str]) -> Option<u64> {
        match path {
            [root] if root == "small" => Some(10),
            _ => None,
        }
    }
}

#[test]
fn estimates_follow_the_size_limits_of_the_host() {
    let list = Type::list(Type::Int);
    let env = Env::kubernetes()
        .variable("small", list.clone())
        .variable("large", list);
    let max = |expr: &str| estimate_cost(&env, &env.compile(expr).unwrap(), &Named).max;
    assert!(max("small.all(x, x > 0)") < 100);
    assert_eq!(max("large.all(x, x > 0)"), u64::MAX);
}

#[test]
fn malformed_data_is_an_error_only_where_it_is_read() {
    let schema = Schema::new(&value!({
        "type": "object",
        "properties": {"at": {"type": "string", "format": "date-time"}, "n": {"type": "integer"}}
    }));
    let decl = DeclType::from_schema(&schema, false, "self").unwrap();
    let env = Env::kubernetes().declare("self", &decl);
    let data = value!({"at": "yesterday", "n": 1});
    let variables = || Variables::new().bind("self", Val::of(&data, &decl));
    let program = env
        .program(&env.compile("self.n == 1 && has(self.at)").unwrap())
        .unwrap();
    assert_eq!(eval(&program, &variables()).unwrap().as_bool(), Some(true));
    let program = env
        .program(&env.compile("self.at.getFullYear() > 2000").unwrap())
        .unwrap();
    assert!(eval(&program, &variables()).is_err());
}
