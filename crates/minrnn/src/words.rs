//! Words for messages: counts of things, and suggestions for names that do not exist.

pub use crate::counted::{counted, plural};
pub use crate::suggestion::suggestion;
