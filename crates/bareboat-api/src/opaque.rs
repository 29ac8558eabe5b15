//! `Debug` for types whose contents tell nothing in a log, or must not get there.

/// Implements `Debug` for types: it prints their names and nothing of what is in them.
///
/// ```
/// struct Credentials(String);
/// bareboat_api::opaque_debug!(Credentials);
///
/// assert_eq!(format!("{:?}", Credentials("secret".to_owned())), "Credentials { .. }");
/// ```
#[macro_export]
macro_rules! opaque_debug {
    ($($type:ty),* $(,)?) => {$(
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )*};
}
