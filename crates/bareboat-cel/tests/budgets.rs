//! Tests of the limits on an evaluation's memory and work, in addition to its cost.

#![allow(clippy::unwrap_used)]

use bareboat_api::{Value, value};
use bareboat_cel::{Budget, DeclType, Env, EvalError, Val, Variables};

const MEBIBYTE: u64 = 1 << 20;

/// Evaluates an expression on `self`; returns the result and the budget afterwards.
fn run(expr: &str, data: &Value) -> (Result<String, EvalError>, Budget) {
    run_within(Budget::new(10_000_000), expr, data)
}

fn run_within(mut budget: Budget, expr: &str, data: &Value) -> (Result<String, EvalError>, Budget) {
    let decl = DeclType::dynamic();
    let env = Env::kubernetes().declare("self", &decl);
    let program = env.program(&env.compile(expr).unwrap()).unwrap();
    let variables = Variables::new().bind("self", Val::of(data, &decl));
    let result = program.eval(&variables, &mut budget);
    (result.map(|value| value.to_string()), budget)
}

/// Checks that the expression exceeds its budget before it allocates much.
fn bounded(expr: &str, data: &Value) {
    let (result, budget) = run(expr, data);
    assert_eq!(result, Err(EvalError::OutOfBudget), "{expr}");
    assert!(
        budget.allocated() <= 16 * MEBIBYTE,
        "{expr}: {}",
        budget.allocated()
    );
}

#[test]
fn text_that_multiplies_is_refused_before_its_allocation() {
    let text = Value::from("a".repeat(1024));
    let list = Value::Array(vec![text.clone(); 1024]);
    let data = value!({"a": text, "l": list});
    bounded(
        "self.a.replace('a', self.a).replace('a', self.a) == ''",
        &data,
    );
    bounded(
        "self.a.split('').map(x, self.a.replace('a', self.a)).join('') == ''",
        &data,
    );
    bounded("self.l.map(x, self.l.join(x)).size() == 1", &data);
    bounded(
        "self.l.map(x, '%s%s'.format([self.l, self.l])).size() == 1",
        &data,
    );
    bounded("self.l.map(x, bytes(self.l.join(''))).size() == 1", &data);
    bounded(
        "self.l.map(x, self.l + self.l + self.l).map(x, x + x).size() == 1",
        &data,
    );
    bounded(
        "self.l.map(x, self.l.map(y, [y, y]) + self.l).map(x, x.map(y, [y])).size() == 1",
        &data,
    );
}

#[test]
fn results_within_the_budget_are_built() {
    let text = Value::from("a".repeat(1024));
    let data = value!({"a": text});
    let (result, budget) = run("self.a.replace('a', self.a).size()", &data);
    assert_eq!(result, Ok((1024 * 1024).to_string()));
    assert!(
        (MEBIBYTE..2 * MEBIBYTE).contains(&budget.allocated()),
        "{}",
        budget.allocated()
    );
}

/// Returns a list that contains a list twice, which contains one twice, and so on.
fn doubled(levels: usize) -> String {
    format!("[['x', 'y']]{}", ".map(a, [a, a])".repeat(levels))
}

#[test]
fn lists_that_contain_each_other_many_times_are_not_walked_completely() {
    let data = value!({});
    let deep = doubled(48);
    for expr in [
        format!("{deep} == {deep}"),
        format!("{deep}.indexOf({deep}[0]) == 0"),
        format!("{deep}[0] in {deep}"),
        format!("sets.contains({deep}, {deep})"),
        format!("'%s'.format([{deep}]) == ''"),
        format!("{deep}.flatten(60).size() == 0"),
    ] {
        let budget = Budget::new(10_000_000).with_work(1 << 20);
        let (result, budget) = run_within(budget, &expr, &data);
        assert_eq!(result, Err(EvalError::OutOfBudget), "{expr}");
        assert!(
            budget.allocated() <= 16 * MEBIBYTE,
            "{expr}: {}",
            budget.allocated()
        );
    }
}

#[test]
fn a_value_with_too_much_content_is_printed_in_part() {
    let (result, _) = run(&format!("{{'a': 1}}[dyn({})]", doubled(48)), &value!({}));
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("no such key: [[["), "{error}");
    assert!(error.len() < 8192, "{}", error.len());
}

#[test]
fn compiling_patterns_from_data_is_charged() {
    let patterns = |count: usize| {
        let list: Vec<Value> = (0..count)
            .map(|n| Value::from(format!("{n}\\pL{{200}}$")))
            .collect();
        let (result, budget) = run("self.all(p, !'text'.matches(p))", &Value::Array(list));
        assert_eq!(result, Ok("true".to_owned()));
        budget.worked()
    };
    let (once, twice) = (patterns(400), patterns(800));
    assert!(once > 400 * 200, "{once}");
    // Four hundred of them are compiled already.
    assert!(twice <= 2 * once, "{once} and {twice}");
    let huge: Vec<Value> = (0..200)
        .map(|n| Value::from(format!("{n}{}", "(a{100}){10}".repeat(100))))
        .collect();
    let (result, _) = run("self.all(p, !'text'.matches(p))", &Value::Array(huge));
    assert_eq!(result, Err(EvalError::OutOfBudget));
}

#[test]
fn quadratic_searches_are_counted() {
    let budget = || Budget::new(10_000_000).with_work(1 << 20);
    let data = Value::from("a".repeat(10_000));
    let (result, _) = run_within(budget(), "self.findAll('a.*b|a').size() == 1", &data);
    assert_eq!(result, Err(EvalError::OutOfBudget));
    let (result, _) = run_within(budget(), "self.matches('(a?){900}b')", &data);
    assert_eq!(result, Err(EvalError::OutOfBudget));
}

#[test]
fn twice_the_input_takes_twice_the_memory_and_work() {
    for expr in [
        "self.map(x, x + 'y').join(',') == ''",
        "self.filter(x, x != 'a').size() == 0",
        "self.map(x, x.replace('i', 'longer')) == self",
        "self.map(x, [x, x]).flatten().size() == 0",
        "self.map(x, x.split('')).size() == 0",
        "'%s'.format([self]) == ''",
        "self.exists(x, x.matches('^b+$'))",
        "self.sort() == self",
    ] {
        let measure = |count: usize| {
            let list: Vec<Value> = (0..count)
                .map(|n| Value::from(format!("item{n:06}")))
                .collect();
            let (result, budget) = run(expr, &Value::Array(list));
            result.unwrap_or_else(|error| panic!("{expr}: {error}"));
            (budget.allocated() + 1, budget.worked() + 1)
        };
        let (memory, work) = measure(200);
        let (memory_twice, work_twice) = measure(400);
        assert!(
            memory_twice * 10 <= memory * 21,
            "{expr}: {memory} and {memory_twice} bytes"
        );
        assert!(
            work_twice * 10 <= work * 22,
            "{expr}: {work} and {work_twice} units"
        );
    }
}
