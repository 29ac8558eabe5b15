//! The parameter `filter`: a CEL expression over `object` and `cluster`.

use crate::members::Fleet;
use crate::types::Asked;
use bareboat_api::kind::PureConvert;
use bareboat_api::{Map, Status, Value};
use bareboat_cel::{
    Budget, DeclType, Env, EvalError, Field, ObjectType, Program, Type, Val, Variables,
};
use bareboat_shelf::{Predicate, Row, Term, Test};
use std::collections::HashMap;
use std::sync::Arc;

/// What the evaluation of one object may cost.
const COST: u64 = 1_000_000;
/// The longest expression.
const LONGEST: usize = 8 << 10;

/// A compiled filter.
struct Filter {
    program: Program,
    cluster: Arc<DeclType>,
    /// What expressions see of members, by name.
    clusters: HashMap<String, Value>,
    /// What makes of a row the object that the request shows, if that is in another group.
    form: Option<(&'static PureConvert, String)>,
}

bareboat_api::opaque_debug!(Filter);

/// Compiles an expression into a condition on objects of a type, or of several.
pub(crate) fn compile(
    expression: &str,
    fleet: &Fleet,
    asked: Option<&Asked>,
) -> Result<Predicate, Status> {
    let wrong = |why: String| Status::bad_request(format!("filter: {why}"));
    if expression.len() > LONGEST {
        return Err(wrong(format!("it is longer than {LONGEST} bytes")));
    }
    let fields = vec![
        Field::exact("name", DeclType::string()),
        Field::exact("ready", DeclType::bool()),
        Field::exact("version", DeclType::string()),
        Field::exact("labels", DeclType::map(DeclType::string(), 1000)),
    ];
    let cluster = DeclType::object(ObjectType::open("Cluster", fields));
    let env = Env::kubernetes()
        .declare("object", &DeclType::dynamic())
        .declare("cluster", &cluster);
    let checked = env.compile(expression);
    let checked = checked.map_err(|issues| {
        let texts: Vec<String> = issues.iter().map(ToString::to_string).collect();
        wrong(texts.join("; "))
    })?;
    if !matches!(checked.result_type(), Type::Bool | Type::Dyn) {
        let found = checked.result_type().name();
        return Err(wrong(format!("it must be bool, not {found}")));
    }
    let program = env.program(&checked);
    let program = program.map_err(|error| wrong(error.to_string()))?;
    let described = fleet.members.values().map(|member| {
        let mut map = Map::new();
        for (key, text) in &member.facts {
            map.insert(key.as_str(), Value::string(text));
        }
        let labels = member.labels.iter();
        let labels: Vec<_> = labels
            .map(|(key, text)| (key.as_str().into(), Value::string(text)))
            .collect();
        let version = member.version.get("gitVersion").and_then(Value::as_str);
        map.insert("name", Value::string(&member.name));
        map.insert("ready", Value::Bool(member.ready));
        map.insert("version", Value::string(version.unwrap_or("")));
        map.insert("labels", Value::Object(Map::from_unsorted(labels)));
        (member.name.clone(), Value::Object(map))
    });
    let clusters = described.collect();
    Ok(Predicate::Term(Term::Test(Arc::new(Filter {
        program,
        cluster,
        clusters,
        form: asked.and_then(Asked::form),
    }))))
}

impl Test for Filter {
    fn test(&self, row: &Row<'_>) -> Result<bool, String> {
        let Some(body) = row.body else {
            return Ok(false);
        };
        let Ok(parsed) = bareboat_wire::json::parse(body) else {
            return Ok(false);
        };
        let mut object = parsed.value;
        if let Some((convert, to)) = &self.form {
            object = convert(object, to, None).map_err(|error| format!("filter: {error}"))?;
        }
        let nothing = Value::object();
        let name = row.directory.member_name(row.narrow.member);
        let cluster = self.clusters.get(name).unwrap_or(&nothing);
        let variables = Variables::new()
            .bind("object", Val::of_json(&object))
            .bind("cluster", Val::of(cluster, &self.cluster));
        let mut budget = Budget::new(COST);
        match self.program.eval(&variables, &mut budget) {
            Ok(value) => value
                .as_bool()
                .ok_or_else(|| "filter: it must be bool".to_owned()),
            // Objects without a field do not match, as with selectors.
            Err(EvalError::Failed(why)) if why.starts_with("no such key") => Ok(false),
            Err(error) => Err(format!("filter: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compile;
    use crate::members::Fleet;

    #[test]
    fn expressions_are_checked() {
        let fleet = Fleet::default();
        let message = |text: &str| {
            compile(text, &fleet, None)
                .err()
                .map(|status| status.message)
        };
        assert_eq!(
            message("object.spec.replicas > 3 && cluster.name != \"c2\""),
            None
        );
        for wrong in [
            "cluster.name > 3",
            "\"text\"",
            "object.spec.",
            "unknown == 1",
        ] {
            let message = message(wrong).unwrap_or_default();
            assert!(message.starts_with("filter: "), "{wrong}: {message}");
        }
    }
}
