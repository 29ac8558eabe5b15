//! Tests that no input causes a panic, a hang or a stack overflow.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use bareboat_cel::{Budget, DeclType, Env, Val, Variables, estimate_cost};
use proptest::prelude::*;
use support::{Schema, json};

/// Compiles, estimates and runs an expression as far as possible.
fn exercise(expr: &str) {
    let schema = Schema::new(&json(include_str!("data/schema.json")));
    let decl = DeclType::from_schema(&schema, false, "selfType").unwrap();
    let data = json(include_str!("data/self.json"));
    let kubernetes = Env::kubernetes()
        .declare("self", &decl)
        .declare("oldSelf", &decl);
    let permissive = Env::permissive().declare("self", &decl);
    for env in [&kubernetes, &permissive] {
        let variables = Variables::new()
            .bind("self", Val::of(&data, &decl))
            .bind("oldSelf", Val::of(&data, &decl));
        if let Ok(program) = env.program_unchecked(expr) {
            let value = program.eval(&variables, &mut Budget::with_per_call(20_000, 20_000));
            let _ = value.map(|value| (value.to_string(), value.to_json()));
        }
        let checked = match env.compile(expr) {
            Ok(checked) => checked,
            Err(issues) => {
                assert!(!issues.to_string().is_empty());
                continue;
            }
        };
        let estimate = estimate_cost(env, &checked, &*decl);
        assert!(estimate.min <= estimate.max || estimate.max == 0, "{expr}");
        if let Ok(program) = env.program(&checked) {
            let value = program.eval(&variables, &mut Budget::with_per_call(20_000, 20_000));
            let _ = value.map(|value| (value.to_string(), value.to_json()));
        }
    }
}

/// Returns the recorded expressions, as seeds.
fn recorded() -> Vec<String> {
    include_str!("data/kubernetes.jsonl")
        .lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record["expr"].as_str().unwrap().to_owned()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_tokens_do_not_panic(
        tokens in proptest::collection::vec(
            proptest::sample::select(vec![
                "self", ".", "name", "(", ")", "[", "]", "{", "}", "?", ":", ",", "+", "-", "!",
                "&&", "||", "==", "<", "in", "1", "1u", "1.5", "'a'", "b'a'", "r'\\'", "true",
                "null", "has", "all", "exists", "map", "x", "size", "list", "m", "format", "%",
                "'%s'", "optional", "of", ".?", "[?", "matches", "duration", "\n", "//", "\"\"\"",
            ]),
            0..40,
        )
    ) {
        exercise(&tokens.concat());
        exercise(&tokens.join(" "));
    }

    #[test]
    fn mutated_expressions_do_not_panic(
        seed in 0..500_usize,
        other in 0..500_usize,
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        with in "\\PC{0,3}",
    ) {
        let seeds = recorded();
        let (a, b) = (&seeds[seed % seeds.len()], &seeds[other % seeds.len()]);
        let boundary = |text: &str, index: usize| {
            (0..=index).rev().find(|at| text.is_char_boundary(*at)).unwrap()
        };
        let (cut, at) = (boundary(a, cut.index(a.len() + 1)), boundary(b, at.index(b.len() + 1)));
        exercise(&format!("{}{with}{}", &a[..cut], &b[at..]));
        exercise(&format!("({a}) == ({b})"));
        exercise(&format!("[{a}].map(x, {b})"));
    }
}

#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let started = Instant::now();
    for depth in [10, 100, 200, 240, 260, 1000, 20_000] {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{1:", "1", "}"),
            ("-(", "1", ")"),
            ("!", "true", ""),
            ("-", "self.n", ""),
            ("size([", "1", "])"),
            ("[1].map(x, ", "x", ")"),
            ("[1].all(x, ", "true", ")"),
            ("optional.of(1).optMap(x, ", "x", ")"),
            ("", "1", " + 1"),
            ("", "self", ".n"),
            ("", "[1]", "[0]"),
            ("", "true", " && true"),
            ("true ? 1 : ", "1", ""),
            ("", "optional.of(1)", ".optMap(x, x)"),
            ("", "[1]", ".map(x, x)"),
            ("", "[1]", ".sortBy(x, x)"),
            ("", "self", ".?n"),
            ("a.b(", "1", ")"),
            ("cel.bind(x, ", "1", ", x + x)"),
        ] {
            let expr = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));

            exercise(&expr);
        }
    }
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[test]
fn long_chains_of_one_logical_operator_are_accepted() {
    let terms: Vec<String> = (0..2000).map(|n| format!("self.n == {n}")).collect();
    let schema = Schema::new(&json(include_str!("data/schema.json")));
    let decl = DeclType::from_schema(&schema, false, "selfType").unwrap();
    let env = Env::kubernetes().declare("self", &decl);
    assert!(env.compile(&terms.join(" || ")).is_ok());
}
