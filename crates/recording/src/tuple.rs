//! Structs that are tuples in files, because a recording has many of them.

/// Converts a struct from and to the tuple of its fields.
macro_rules! tuple_form {
    ($type:ident { $($field:ident: $of:ty),* }) => {
        impl From<($($of,)*)> for $type {
            fn from(($($field,)*): ($($of,)*)) -> Self {
                Self { $($field),* }
            }
        }

        impl From<$type> for ($($of,)*) {
            fn from($type { $($field),* }: $type) -> Self {
                ($($field,)*)
            }
        }
    };
}
pub(crate) use tuple_form;
