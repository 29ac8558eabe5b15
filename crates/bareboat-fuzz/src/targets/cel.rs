//! Any text as an expression: parsed, checked, its cost estimated, evaluated within a budget.

use bareboat_api::value;
use bareboat_cel::{Budget, DeclType, Env, Field, ObjectType, Val, Variables, estimate_cost};
use std::sync::{Arc, LazyLock};

static SELF: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let text = DeclType::string();
    let fields = [
        ("name", text.clone()),
        ("n", DeclType::int()),
        ("ok", DeclType::bool()),
        ("list", DeclType::list(text.clone(), 100)),
        ("map", DeclType::map(DeclType::int(), 100)),
    ];
    let fields = fields
        .into_iter()
        .filter_map(|(name, kind)| Field::new(name, kind));
    DeclType::object(ObjectType::new("self", fields.collect()))
});

pub(crate) fn run(input: &[u8]) -> bool {
    let Ok(expression) = std::str::from_utf8(input) else {
        return false;
    };
    let env = Env::kubernetes()
        .declare("self", &SELF)
        .declare("oldSelf", &SELF);
    let Ok(checked) = env.compile(expression) else {
        return false;
    };
    let estimate = estimate_cost(&env, &checked, &**SELF);
    assert!(estimate.min <= estimate.max || estimate.max == 0);
    let Ok(program) = env.program(&checked) else {
        return true;
    };
    let data = value!({"name": "a", "n": 1, "ok": true, "list": ["a", "b"], "map": {"a": 1}});
    let variables = Variables::new()
        .bind("self", Val::of(&data, &SELF))
        .bind("oldSelf", Val::of(&data, &SELF));
    if let Ok(result) = program.eval(&variables, &mut Budget::with_per_call(20_000, 20_000)) {
        let _ = (result.to_string(), result.to_json());
    }
    true
}
