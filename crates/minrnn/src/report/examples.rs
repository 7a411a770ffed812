//! Single sequences: the worst errors in class or number, and forecasts beside the actual values.

use super::chart::{Chart, range};
use crate::data::table::Example;
use crate::html::escaped;
use crate::numbers::{Shortest, significant};

/// Maximum number of sequences of either kind that are shown.
const MOST: usize = 12;

/// Sequences for which another class was predicted, or whose number is far from the predicted one.
pub(super) fn labelled(examples: &[Example]) -> String {
    let figures = examples.iter().filter_map(|example| match example {
        Example::Classified { name, class, predicted, probability, column, values } => {
            let [shown, class, predicted] = [name, class, predicted].map(|text| escaped(text));
            let words = format!("<b>{shown}</b> is {class}, taken for {predicted} with {:.0} %", 100.0 * probability);
            Some(sequence(name, column, values, &words))
        }
        Example::Measured { name, number, predicted, column, values } => {
            let words = format!("<b>{}</b> is {}, predicted {}", escaped(name), Shortest(*number), significant(*predicted));
            Some(sequence(name, column, values, &words))
        }
        Example::Forecast { .. } => None,
    });
    let shown = examples.iter().find_map(|example| match example {
        Example::Classified { column, .. } | Example::Measured { column, .. } => Some(column),
        Example::Forecast { .. } => None,
    });
    let shown =
        shown.map_or_else(String::new, |column| format!("<p class=\"note\">{} of these sequences, step by step</p>\n", escaped(column)));
    pictures(&shown, figures.take(MOST).collect())
}

/// The column of a sequence that is shown, with `words` below.
fn sequence(name: &str, column: &str, values: &[f64], words: &str) -> String {
    let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, &y)| (at as f64, y)).collect();
    let mut chart = Chart::new([420.0, 150.0], 0.0..values.len().saturating_sub(1) as f64, range(values.iter().copied()));
    chart.line("model", &points);
    format!("<figure>\n{}<figcaption>{words}</figcaption>\n</figure>\n", chart.svg("step", &format!("{column} of the sequence {name}")))
}

/// Forecasts from the end of the history, with the actual values.
pub(super) fn forecast(examples: &[Example]) -> String {
    let figures = examples.iter().filter_map(|example| match example {
        Example::Forecast { name, target, past, came, median, interval, error } => {
            let at = |values: &[f64], first: usize| values.iter().enumerate().map(|(at, &y)| ((first + at) as f64, y)).collect::<Vec<_>>();
            let begins = past.len();
            let sides = interval.iter().flat_map(|&(low, high)| [low, high]);
            let seen = past.iter().chain(came).chain(median).copied().chain(sides);
            let mut chart = Chart::new([420.0, 220.0], 0.0..(begins + median.len()).saturating_sub(1) as f64, range(seen));
            chart.band(&interval.iter().enumerate().map(|(at, &(low, high))| ((begins + at) as f64, low, high)).collect::<Vec<_>>());
            chart.line("past", &at(past, 0));
            // Both continue from the last known value.
            let from_last = |values: &[f64]| {
                let last = past.last().map(|&y| ((begins - 1) as f64, y));
                last.into_iter().chain(at(values, begins)).collect::<Vec<_>>()
            };
            chart.line("came", &from_last(came));
            chart.line("model", &from_last(median));
            let [shown, of_target] = [name, target].map(|text| escaped(text));
            let of = if name.is_empty() { of_target } else { format!("<b>{shown}</b>, {of_target}") };
            let error = error.map_or_else(String::new, |error| format!(": scaled error {error:.2}"));
            Some(format!(
                "<figure>\n{}<figcaption>{of}{error}</figcaption>\n</figure>\n",
                chart.svg("step", &format!("A forecast of {target}"))
            ))
        }
        Example::Classified { .. } | Example::Measured { .. } => None,
    });
    let keys = [("key-past", "before"), ("key-came", "what came"), ("", "forecast"), ("key-band", "its interval")];
    let legend: String = keys.iter().map(|(key, words)| format!("<span><i class=\"{key}\"></i>{words}</span>")).collect();
    pictures(&format!("<p class=\"legend\">{legend}</p>\n"), figures.take(MOST).collect())
}

fn pictures(before: &str, figures: String) -> String {
    if figures.is_empty() { figures } else { format!("{before}<div class=\"pictures\">\n{figures}</div>\n") }
}
