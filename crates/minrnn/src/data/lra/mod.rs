//! Long Range Arena: one label for a sequence of a thousand or more steps.
//!
//! | task | sequence | classes | data |
//! |---|---|---|---|
//! | [`ListOps`] | an expression of nested MIN, MAX, MED and SM over digits | its value, 10 | generated, or the official files |
//! | [`Retrieval`] | two documents, letter by letter | do they cite one another, 2 | the ACL Anthology Network's files |
//! | [`Image`] | the pixels of a grey picture, row by row | what it shows, 10 | CIFAR-10's files |
//!
//! The label is the target of the last step. Training visits the training part in a new order on every pass; scoring covers the whole
//! validation or test part.

mod image;
mod lines;
mod listops;
mod retrieval;

pub use image::{Image, PixelInput};
pub use listops::{Expressions, ListOps, ListOpsTask};
pub use retrieval::{Retrieval, RetrievalTask, TextUnit};
