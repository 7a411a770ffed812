//! Lists within sentences.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The first `most` of `items`, separated by commas, and how many more there are, which keeps messages short however many names a table
/// has.
pub fn first_few(most: usize, items: impl ExactSizeIterator<Item = String>) -> String {
    let others = items.len().saturating_sub(most);
    let told = items.take(most).collect::<Vec<_>>().join(", ");
    if others == 0 { told } else { format!("{told} and {others} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_told_and_the_others_counted() {
        let few = |n: usize| first_few(8, (0..n).map(|at| format!("'{at}'")));
        assert_eq!([0, 1, 2].map(few), ["", "'0'", "'0', '1'"]);
        assert!(few(8).ends_with("'6', '7'"));
        assert!(few(10).ends_with("'6', '7' and 2 more"));
    }
}
