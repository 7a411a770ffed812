//! The results beside a baseline, and the confusion of classes.

use std::fmt::Write;

use crate::data::table::{Confusion, Measure, Verdict};
use crate::html::escaped;

/// Maximum number of classes for which a table of them is helpful.
const MOST_CLASSES: usize = 40;

pub(super) fn measures(measures: &[Measure]) -> String {
    let mut text = String::new();
    for measure in measures {
        let _ = write!(text, "<div class=\"score\">{}<b>{}</b>", escaped(&measure.name()), escaped(&measure.shown(measure.found)));
        let interval = measure.interval_shown().map_or_else(String::new, |interval| interval + ", ");
        let _ = write!(text, "<span>{interval}{}</span>", measure.n_shown());
        if let Some(baseline) = &measure.baseline {
            let class = match baseline.verdict {
                Verdict::Better => "better",
                Verdict::Worse => "worse",
                Verdict::Undecided => "",
            };
            let (name, found, verdict) = (escaped(&baseline.name), measure.shown(baseline.found), baseline.verdict.describe());
            let _ = write!(text, "<br><span>beside {name}: {found}; <em class=\"{class}\">{verdict}</em></span>");
        }
        text += "</div>\n";
    }
    if text.is_empty() { text } else { format!("<div class=\"scores\">\n{text}</div>\n") }
}

pub(super) fn confusion(confusion: &Confusion) -> String {
    let names = confusion.names();
    if names.len() > MOST_CLASSES {
        return String::new();
    }
    let mut text = String::from("<div class=\"scroll\"><table>\n<tr><th>class</th><th>n</th><th>recall</th><th>precision</th>");
    for name in names {
        let _ = write!(text, "<th>predicted {}</th>", escaped(name));
    }
    text += "</tr>\n";
    let share = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    for (class, name) in names.iter().enumerate() {
        let of = confusion.of_class(class);
        let (recall, precision) = (share(of.recall), share(of.precision));
        let _ = write!(text, "<tr><td>{}</td><td>{}</td><td>{recall}</td><td>{precision}</td>", escaped(name), of.n);
        for predicted in 0..names.len() {
            let count = confusion.count(class, predicted);
            // The larger the share of the row, the deeper the colour; errors have another colour.
            let tenths = (10 * count).div_ceil(of.n.max(1));
            let class = if class == predicted { "right" } else { "wrong" };
            let _ = write!(text, "<td class=\"{class} s{tenths}\">{count}</td>");
        }
        text += "</tr>\n";
    }
    text + "</table></div>\n"
}
