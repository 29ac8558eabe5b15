//! Expressions of admission: what they may use, and which are refused.

use super::{AdmissionEnv, Purpose, Refused};
use crate::{Budget, Val, Variables};
use bareboat_api::value;

fn refusal(result: Result<crate::Program, Refused>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(refused) => refused.to_string(),
    }
}

#[test]
fn each_purpose_has_its_own_variables() {
    let plain = AdmissionEnv::new(false);
    let with_params = AdmissionEnv::new(true);
    for (env, expression, purpose, wanted) in [
        (&plain, "object.a == oldObject.a", Purpose::Validation, ""),
        (
            &plain,
            "request.userInfo.groups.exists(g, g == 'x')",
            Purpose::MatchCondition,
            "",
        ),
        (
            &plain,
            "namespaceObject.metadata.name == 'a'",
            Purpose::Validation,
            "",
        ),
        (
            &plain,
            "params.a == 1",
            Purpose::Validation,
            "undeclared reference to 'params'",
        ),
        (&with_params, "params.a == 1", Purpose::Validation, ""),
        (
            &plain,
            "variables.a == 1",
            Purpose::Validation,
            "undeclared reference to 'variables'",
        ),
        (
            &plain,
            "authorizer.requestResource.check('get').allowed()",
            Purpose::Validation,
            "",
        ),
        (
            &plain,
            "string(authorizer.path('/').check('get').allowed())",
            Purpose::Message,
            "undeclared reference to 'authorizer'",
        ),
        (
            &plain,
            "request.nothing",
            Purpose::Variable,
            "undefined field 'nothing'",
        ),
        (
            &plain,
            "1",
            Purpose::AuditAnnotation,
            "must evaluate to one of [string null_type] but got int",
        ),
        (&plain, "null", Purpose::AuditAnnotation, ""),
        (
            &plain,
            "object.a",
            Purpose::Validation,
            "must evaluate to bool but got dyn",
        ),
        (
            &plain,
            "Object{spec: Object.spec{a: 1}}",
            Purpose::ApplyConfiguration,
            "",
        ),
        (
            &plain,
            "{'a': 1}",
            Purpose::ApplyConfiguration,
            "must evaluate to Object but got map(string, int)",
        ),
        (
            &plain,
            "[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a'), value: {}}]",
            Purpose::JsonPatch,
            "",
        ),
        (
            &plain,
            "JSONPatch{op: 'add'}",
            Purpose::JsonPatch,
            "must evaluate to list(JSONPatch) but got JSONPatch",
        ),
        (
            &plain,
            "Object{} == Object{}",
            Purpose::Validation,
            "undeclared reference to 'Object'",
        ),
    ] {
        let result = env.compile(expression, purpose);
        match wanted {
            "" => assert!(result.is_ok(), "{expression}: {}", refusal(result)),
            wanted => {
                let refused = refusal(result);
                assert!(refused.contains(wanted), "{expression}: {refused}");
            }
        }
    }
}

#[test]
fn variables_can_be_used_after_their_definition() {
    let mut env = AdmissionEnv::new(false).composed();
    let undefined = refusal(env.define("a", "variables.b"));
    assert!(
        undefined
            .ends_with("ERROR: <input>:1:10: undefined field 'b'\n | variables.b\n | .........^"),
        "{undefined}"
    );
    assert!(env.define("b", "1 + 1").is_ok());
    assert!(env.define("a__c", "[1]").is_ok());
    assert!(
        env.compile("has(variables.b) && variables.b > 1", Purpose::Validation)
            .is_ok()
    );
    let wrong = refusal(env.compile("variables.b == 'x'", Purpose::Validation));
    assert!(wrong.contains("no matching overload"), "{wrong}");
    let unseen = refusal(env.compile("variables.b == 2", Purpose::MatchCondition));
    assert!(
        unseen.contains("undeclared reference to 'variables'"),
        "{unseen}"
    );
    // A variable that failed to compile is `dyn` for other expressions.
    assert!(
        env.compile("variables.a == 'x'", Purpose::Validation)
            .is_ok()
    );
    let program = env.compile("variables.a__c[0] == variables.b", Purpose::Validation);
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    let list = value!([2]);
    let variables = Variables::new()
        .bind("variables.b", Val::Int(2))
        .bind("variables.a__c", Val::of_json(&list));
    let result = program.eval(&variables, &mut Budget::new(1000));
    assert_eq!(result.map(|value| value.as_bool()), Ok(Some(true)));
}

#[test]
fn a_long_chain_of_nested_variables_compiles_without_deep_types() {
    let mut env = AdmissionEnv::new(false).composed();
    assert!(env.define("v0", "[1]").is_ok());
    for index in 1..2000 {
        let (open, close) = ("[".repeat(100), "]".repeat(100));
        let expression = format!("{open}variables.v{}{close}", index - 1);
        assert!(env.define(&format!("v{index}"), &expression).is_ok());
    }
}
