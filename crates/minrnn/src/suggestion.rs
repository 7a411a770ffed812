//! What was probably meant by a name that does not exist.

/// Names listed where none is close.
const LISTED: usize = 24;

/// `; did you mean 'x'?` for the name closest to `name`, or a list of names when none is close.
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let closeness = |candidate: &str| strsim::jaro_winkler(name, candidate);
    match known.iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b))) {
        Some(best) if closeness(best) > 0.8 => format!("; did you mean '{best}'?"),
        _ => {
            let more = if known.len() > LISTED { ", …" } else { "" };
            format!("; expected one of {}{more}", known[..known.len().min(LISTED)].join(", "))
        }
    }
}
