//! Size limits of the data that expressions read. `estimate` computes costs from them.

use bareboat_api::Str;

use crate::decl::DeclType;

/// Size limits of the data.
///
/// ```
/// use bareboat_api::Str;
/// use bareboat_cel::{DeclType, Env, NoHints, SizeHints, estimate_cost};
///
/// struct TenCharacters;
/// impl SizeHints for TenCharacters {
///     fn max_size(&self, path: &[Str]) -> Option<u64> {
///         (path == ["name"]).then_some(10)
///     }
/// }
///
/// let env = Env::kubernetes().declare("name", &DeclType::string());
/// let checked = env.compile("name.contains('x')").expect("it is an expression");
/// let bounded = estimate_cost(&env, &checked, &TenCharacters).max;
/// assert!(bounded < estimate_cost(&env, &checked, &NoHints).max);
/// ```
pub trait SizeHints {
    /// Returns the maximum `size()` of the value at a path. The path begins with a variable and
    /// continues with fields, `@items`, `@keys` and `@values`.
    fn max_size(&self, path: &[Str]) -> Option<u64>;
}

/// Size limits where every variable has this type, like `self` and `oldSelf`.
impl SizeHints for DeclType {
    fn max_size(&self, path: &[Str]) -> Option<u64> {
        let (_, below) = path.split_first()?;
        self.at(below).map(|decl| decl.max_elements)
    }
}

/// No size limits for any variable.
#[derive(Clone, Copy, Debug)]
pub struct NoHints;

impl SizeHints for NoHints {
    fn max_size(&self, _: &[Str]) -> Option<u64> {
        None
    }
}
