//! Compares our answers with those of Kubernetes 1.36, for expressions over a schema with many
//! types: types, messages, estimates, values, costs.
//!
//! The answers in `data/kubernetes.jsonl` were recorded from its own libraries.

#![allow(clippy::unwrap_used)]

mod support;

use bareboat_api::Value;
use bareboat_cel::{Budget, DeclType, Env, Type, Val, Variables, estimate_cost};
use support::{Schema, json};

fn full_name(ty: &Type) -> String {
    match ty {
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}

/// Returns our answer, in the form of the record.
fn answer(env: &Env, decl: &DeclType, data: &Value, expr: &str) -> serde_json::Value {
    let checked = match env.compile(expr) {
        Ok(checked) => checked,
        Err(issues) => {
            return serde_json::json!({"expr": expr, "issues": issues.to_string()});
        }
    };
    let estimate = estimate_cost(env, &checked, decl);
    let mut answer = serde_json::json!({
        "expr": expr,
        "type": full_name(checked.result_type()),
        "min": estimate.min,
        "max": estimate.max,
    });
    let program = match env.program(&checked) {
        Ok(program) => program,
        Err(error) => {
            answer["program"] = error.to_string().into();
            return answer;
        }
    };
    let variables = Variables::new()
        .bind("self", Val::of(data, decl))
        .bind("oldSelf", Val::of(data, decl));
    let mut budget = Budget::new(10_000_000);
    match program.eval(&variables, &mut budget) {
        Ok(value) => {
            let text = value.to_json().map(|value| value.to_string());
            answer["value"] = text.unwrap_or_else(|| value.to_string()).into();
        }
        Err(error) => answer["error"] = error.to_string().into(),
    }
    answer["cost"] = budget.last_cost().into();
    answer
}

#[test]
fn expressions_have_the_recorded_results() {
    let schema = Schema::new(&json(include_str!("data/schema.json")));
    let decl = DeclType::from_schema(&schema, false, "selfType").unwrap();
    let data = json(include_str!("data/self.json"));
    let env = Env::kubernetes()
        .declare("self", &decl)
        .declare("oldSelf", &decl);
    let mut wrong = Vec::new();
    for line in include_str!("data/kubernetes.jsonl").lines() {
        let recorded: serde_json::Value = serde_json::from_str(line).unwrap();
        let found = answer(&env, &decl, &data, recorded["expr"].as_str().unwrap());
        if found != recorded {
            wrong.push(format!("wanted {recorded}\nfound  {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
