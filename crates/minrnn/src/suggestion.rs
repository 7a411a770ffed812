//! Suggestions for a name that does not exist.

use std::collections::HashSet;

use minrnn_model::first_few;

/// Maximum number of names listed if none is close: enough for all experiments, tables, or settings of a section.
const LISTED: usize = 24;

/// `; did you mean 'x'?` for the name closest to `name`, or a list of names, each once, if none is close.
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut before = HashSet::new();
    let names: Vec<&str> = known.filter(|known| before.insert(*known)).collect();
    let closeness = |candidate: &str| strsim::jaro_winkler(name, candidate);
    match names.iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b))) {
        Some(best) if closeness(best) > 0.8 => format!("; did you mean '{best}'?"),
        // In quotes, since a name may contain a comma.
        _ => format!("; expected one of {}", first_few(LISTED, names.iter().map(|name| format!("'{name}'")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_told_apart_and_each_is_told_once() {
        let known = ["minLSTM", "minGRU", "minLSTM, official", "minGRU"];
        assert_eq!(suggestion("nope", known.into_iter()), "; expected one of 'minLSTM', 'minGRU', 'minLSTM, official'");
        assert_eq!(suggestion("minGRUU", known.into_iter()), "; did you mean 'minGRU'?");
    }
}
