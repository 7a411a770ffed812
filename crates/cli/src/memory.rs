//! How much memory a command may take, and what is said about it.

use minrnn::memory::{Estimate, Room, Size, rounded};

/// A training's largest parts are named if it needs more than one part in this many of the memory there is.
const LARGE: u128 = 2;

/// `--memory-limit`, to be flattened into the arguments of a command.
#[derive(clap::Args)]
pub struct MemoryArg {
    /// Refuse what needs more memory than this, such as 4GiB or 800MB; the machine's own limits always apply
    #[arg(long = "memory-limit", value_name = "SIZE", allow_hyphen_values = true)]
    limit: Option<Size>,
}

impl MemoryArg {
    /// The limit, if one was given.
    pub fn given(&self) -> Option<Size> {
        self.limit
    }
}

/// A line on how much memory is needed, with the largest parts if that is much of what there is.
pub fn line(estimate: &Estimate, limit: Option<Size>) -> String {
    let told = format!("about {} of memory", rounded(estimate.total()));
    match Room::left(limit) {
        Some(room) if estimate.total() > u128::from(room.bytes) / LARGE => {
            format!("{told} ({}); {room}", estimate.largest_in_words(3))
        }
        _ => told,
    }
}
