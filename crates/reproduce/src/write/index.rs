//! `README.md` and `index.html` of the results folder: an overview.

use std::fmt::Write;

use minrnn_model::write_atomic;
use serde_json::Value;

use super::html::write_html;
use crate::folder::{self, Folder};
use crate::{Metric, Result, Scale, catalog};

/// Lists every target with results in `folder`, noting those whose file is damaged.
///
/// # Errors
/// When writing fails.
pub fn write_index(folder: &Folder, scale: Scale) -> Result<()> {
    let mut page = format!("# Results of `minrnn reproduce` at scale {}\n\n", scale.name());
    if scale == Scale::Smoke {
        page += "**The numbers mean nothing; they show that everything runs.**\n\n";
    }
    page += "| target | what | runs done | published order | machine | commit |\n|---|---|---|---|---|---|\n";
    for target in catalog::all()? {
        let name = &target.name;
        let line = format!("| [{name}]({name}.md) ([CSV]({name}.csv), [JSON]({name}.json)) | {} |", target.title);
        let found: Value = match folder::read(&folder.file(name, "json")) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) if error.is_wrong_input() => {
                let _ = writeln!(page, "{line} {name}.json is damaged; writing the pages of {name} anew replaces it | | | |");
                continue;
            }
            Err(error) => return Err(error),
        };
        let origins = found["origins"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |key: &str| {
            let mut texts: Vec<&str> = origins.iter().filter_map(|origin| origin[key].as_str()).collect();
            texts.sort_unstable();
            texts.dedup();
            texts.join(", ")
        };
        let runs = |key: &str| found["runs"][key].as_u64().map_or_else(String::new, |n| n.to_string());
        let orders = order(&target.metrics, &found["orders"]);
        let _ = writeln!(page, "{line} {} of {} | {orders} | {} | {} |", runs("done"), runs("of"), of("machine"), of("commit"));
    }
    page += "\nEvery run has a folder in `runs/` with its resolved experiment and its result.\n";
    page += "[index.html](index.html) shows all of these pages as one.\n";
    write_atomic(folder.file("README", "md"), page.as_bytes())?;
    write_html(folder, scale)
}

/// The verdict on the published order: a single word if all metrics that have one agree, otherwise one for each metric.
fn order(metrics: &[Metric], orders: &Value) -> String {
    let verdict = |metric: &Metric| Some((metric.name(), orders[metric.name()]["verdict"].as_str()?));
    let found: Vec<(&str, &str)> = metrics.iter().filter_map(verdict).collect();
    match found.as_slice() {
        [] => String::new(),
        [(_, first), others @ ..] if others.iter().all(|(_, verdict)| verdict == first) => (*first).to_owned(),
        several => several.iter().map(|(metric, verdict)| format!("{metric}: {verdict}")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_that_differ_say_what_they_are_of() {
        let orders = |accuracy: &str, loss: &str| {
            let orders = serde_json::json!({ "accuracy": { "verdict": accuracy }, "loss": { "verdict": loss } });
            order(&[Metric::Accuracy, Metric::BestIteration, Metric::Loss], &orders)
        };
        assert_eq!(orders("kept", "broken"), "accuracy: kept, loss: broken");
        assert_eq!(orders("kept", "kept"), "kept");
        assert_eq!(order(&[Metric::Loss], &Value::Null), "");
    }

    #[test]
    fn damaged_files_of_one_target_are_named_and_the_others_are_listed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path(), Scale::Cpu).unwrap();
        let page = serde_json::json!({ "origins": [], "orders": {}, "runs": { "done": 2, "of": 3 } });
        folder::write(&folder.file("table1", "json"), &page).unwrap();
        for damaged in ["", "{\"runs\":"] {
            std::fs::write(folder.file("figure5", "json"), damaged).unwrap();
            std::fs::write(folder.file("figure5", "md"), b"\xff").unwrap();
            write_index(&folder, Scale::Cpu).unwrap();
            let index = std::fs::read_to_string(folder.file("README", "md")).unwrap();
            assert!(index.contains("figure5.json is damaged; writing the pages of figure5 anew replaces it"), "{index}");
            assert!(index.contains("2 of 3"), "{index}");
            let html = std::fs::read_to_string(folder.file("index", "html")).unwrap();
            assert!(html.contains("<section id=\"figure5\">\n<p>figure5.md is damaged"), "{html}");
        }
    }
}
