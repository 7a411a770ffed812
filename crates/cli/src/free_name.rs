//! Names of our own columns beside those of a table, which may already have the same name.

/// `name`, with `more` appended until it is none of `others`.
pub fn free_name(mut name: String, more: &str, others: &[String]) -> String {
    while others.contains(&name) {
        name += more;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_no_other_column() {
        let free = |others: &[&str]| free_name("step".to_owned(), "_ahead", &others.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(free(&["steps"]), "step");
        assert_eq!(free(&["step"]), "step_ahead");
        assert_eq!(free(&["step_ahead", "step"]), "step_ahead_ahead");
    }
}
