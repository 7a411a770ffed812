//! What was probably meant by a name that does not exist.

/// Names listed where none is close.
const LISTED: usize = 24;

/// `; did you mean 'x'?` for the name closest to `name`, or a list of names, each once, when none is close.
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for known in known {
        if !names.contains(&known) {
            names.push(known);
        }
    }
    let closeness = |candidate: &str| strsim::jaro_winkler(name, candidate);
    match names.iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b))) {
        Some(best) if closeness(best) > 0.8 => format!("; did you mean '{best}'?"),
        _ => {
            let more = if names.len() > LISTED { ", …" } else { "" };
            // In quotes, since a name may have a comma.
            let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("'{name}'")).collect();
            format!("; expected one of {}{more}", listed.join(", "))
        }
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
