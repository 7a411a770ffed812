//! Named alternatives: enums whose variants have names in files and on command lines.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "serde")]
#[doc(hidden)]
pub use serde;

/// A name that is not one of the alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownChoice {
    /// What the alternatives are for, such as "candidate".
    pub what: &'static str,
    /// The name that was found.
    pub found: String,
    /// The known names.
    pub expected: Vec<&'static str>,
}

impl UnknownChoice {
    #[doc(hidden)]
    pub fn new(what: &'static str, found: &str, expected: impl Iterator<Item = &'static str>) -> Self {
        Self { what, found: found.to_string(), expected: expected.collect() }
    }
}

impl fmt::Display for UnknownChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} '{}'; expected one of {}", self.what, self.found, self.expected.join(", "))
    }
}

impl core::error::Error for UnknownChoice {}

/// Defines an enum whose variants are known by a name: `Display`, `FromStr`, the list of all and, with the feature `serde`, serialisation
/// agree on it.
#[doc(hidden)]
#[macro_export]
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every alternative, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name used in files and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl core::str::FromStr for $name {
            type Err = $crate::choice::UnknownChoice;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().copied().find(|choice| choice.name() == text);
                found.ok_or_else(|| $crate::choice::UnknownChoice::new($what, text, Self::ALL.iter().map(|choice| choice.name())))
            }
        }

        $crate::serialized_by_name!($name, $what { $($text,)+ });
    };
}

/// Serialisation of [`choices!`] by name.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! serialized_by_name {
    ($name:ident, $what:literal { $($text:literal,)+ }) => {
        impl $crate::choice::serde::Serialize for $name {
            fn serialize<S: $crate::choice::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> $crate::choice::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::choice::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl $crate::choice::serde::de::Visitor<'_> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str(concat!("the name of a ", $what))
                    }

                    fn visit_str<E: $crate::choice::serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        const NAMES: &[&str] = &[$($text,)+];
                        text.parse().map_err(|_| E::unknown_variant(text, NAMES))
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }
    };
}

/// Without the feature nothing is serialised.
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! serialized_by_name {
    ($name:ident, $what:literal { $($text:literal,)+ }) => {};
}

#[cfg(test)]
mod tests {
    use crate::Candidate;
    use alloc::string::ToString;

    #[test]
    fn names_lead_back_to_what_they_name() {
        for &candidate in Candidate::ALL {
            assert_eq!(candidate.to_string().parse(), Ok(candidate));
        }
        let refused = "sine".parse::<Candidate>().unwrap_err().to_string();
        assert_eq!(refused, "unknown candidate 'sine'; expected one of positive, identity, tanh");
    }
}
