//! CEL in the configurations: the variables of expressions, the types of their results, and their cost limit.

use bareboat_api::Value;
use bareboat_cel::{
    Budget, Checked, DeclType, Env, Field, ObjectType, PER_CALL_LIMIT, Program, Type, Val,
    Variables,
};
use std::sync::{Arc, LazyLock};

/// A compiled expression over one variable.
pub(crate) struct Expression {
    source: String,
    variable: &'static Variable,
    program: Program,
    checked: Checked,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

/// The type that the result of an expression must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    /// A bool; checked when the expression is compiled.
    Bool,
    /// Any type; checked when the expression is evaluated.
    Anything,
}

/// A variable that expressions may read.
pub(crate) struct Variable {
    name: &'static str,
    decl: Arc<DeclType>,
    env: Env,
}

impl Variable {
    pub(crate) fn new(name: &'static str, decl: Arc<DeclType>) -> Variable {
        let env = Env::kubernetes().declare(name, &decl);
        Variable { name, decl, env }
    }
}

/// The claims of a token: a map of text to anything.
pub(crate) static CLAIMS: LazyLock<Variable> =
    LazyLock::new(|| Variable::new("claims", DeclType::map(DeclType::dynamic(), 0)));

/// The user that claims were mapped to.
pub(crate) static USER: LazyLock<Variable> = LazyLock::new(|| {
    let text = DeclType::string();
    let texts = DeclType::list(text.clone(), 0);
    let fields = vec![
        Field::exact("username", text.clone()),
        Field::exact("uid", text),
        Field::exact("groups", texts.clone()),
        Field::exact("extra", DeclType::map(texts, 0)),
    ];
    let user = ObjectType::new("kubernetes.UserInfo", fields);
    Variable::new("user", DeclType::object(user))
});

impl Expression {
    /// Compiles an expression; the error is the text after `Invalid value: "…": `.
    pub(crate) fn compile(
        source: &str,
        variable: &'static Variable,
        gives: Gives,
    ) -> Result<Expression, String> {
        let env = &variable.env;
        let checked = env
            .compile(source)
            .map_err(|issues| format!("compilation failed: {issues}"))?;
        if gives == Gives::Bool && !matches!(checked.result_type(), Type::Bool) {
            return Err("must evaluate to bool".to_owned());
        }
        let program = env
            .program(&checked)
            .map_err(|error| format!("program instantiation failed: {error}"))?;
        Ok(Expression {
            source: source.to_owned(),
            variable,
            program,
            checked,
        })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression reads a member of its variable.
    pub(crate) fn reads(&self, member: &str) -> bool {
        self.checked.selects(self.variable.name, member)
    }

    fn evaluate<T>(
        &self,
        data: &Value,
        read: impl FnOnce(Val<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let variables =
            Variables::new().bind(self.variable.name, Val::of(data, &self.variable.decl));
        let mut budget = Budget::with_per_call(PER_CALL_LIMIT, PER_CALL_LIMIT);
        let found = self
            .program
            .eval(&variables, &mut budget)
            .map_err(|error| error.to_string())?;
        read(found)
    }

    /// Evaluates the expression to a bool; another type is an error.
    pub(crate) fn holds(&self, data: &Value) -> Result<bool, String> {
        self.evaluate(data, |found| {
            found
                .as_bool()
                .ok_or_else(|| "the result is not a bool".to_owned())
        })
    }

    /// Evaluates the expression to a string; another type is an error.
    pub(crate) fn text(&self, data: &Value) -> Result<String, String> {
        self.evaluate(data, |found| {
            found
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| "the result is not a string".to_owned())
        })
    }

    /// Evaluates the expression to texts: one, a list, or none for null. Empty ones are left out.
    pub(crate) fn texts(&self, data: &Value) -> Result<Vec<String>, String> {
        let wrong = || "the result is neither a string nor a list of strings".to_owned();
        self.evaluate(data, |found| {
            let texts = match &found {
                Val::Null => Vec::new(),
                Val::String(text) => vec![text.as_str().to_owned()],
                Val::List(list) => list
                    .iter()
                    .map(|item| {
                        let item = item.map_err(|error| error.to_string())?;
                        item.as_str().map(str::to_owned).ok_or_else(wrong)
                    })
                    .collect::<Result<_, _>>()?,
                _ => return Err(wrong()),
            };
            Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
        })
    }
}
