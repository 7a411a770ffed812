//! Counts in a sentence: `1 layer`, `2 layers`.

use std::fmt::Display;

/// `n` with the noun `one`, in the plural unless `n` is 1.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, one: &str) -> String {
    let told = plural(&n, one);
    format!("{n} {told}")
}

/// The noun `one`, in the plural unless `n` is 1.
pub fn plural<N: PartialEq + From<u8>>(n: &N, one: &str) -> String {
    match one {
        _ if *n == N::from(1) => one.to_owned(),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| one.ends_with(end)) => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_called_several() {
        assert_eq!([0, 1, 2].map(|n: usize| counted(n, "layer")), ["0 layers", "1 layer", "2 layers"]);
        assert_eq!([1, 3].map(|n: u64| counted(n, "batch")), ["1 batch", "3 batches"]);
        assert_eq!((plural(&1_usize, "process"), plural(&2_usize, "process")), ("process".to_owned(), "processes".to_owned()));
    }
}
