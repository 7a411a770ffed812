//! Words of sentences that people read: numbers of things, and what was probably meant by a name that does not exist.

pub use crate::counted::{counted, plural};
pub use crate::suggestion::suggestion;
