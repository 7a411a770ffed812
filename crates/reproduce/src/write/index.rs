//! `README.md` and `index.html` of the results folder: what there is.

use std::fmt::Write;

use minrnn_model::write_atomic;

use super::html::write_html;
use crate::folder::{self, Folder};
use crate::{Result, Scale, catalog};

/// Lists every target whose results lie in `folder`.
///
/// # Errors
/// When a result cannot be read or the list not be written.
pub fn write_index(folder: &Folder, scale: Scale) -> Result<()> {
    let mut page = format!("# Results of `minrnn reproduce` at scale {}\n\n", scale.name());
    if scale == Scale::Smoke {
        page += "**The numbers mean nothing; they show that everything runs.**\n\n";
    }
    page += "| target | what | runs made | published order | machine | commit |\n|---|---|---|---|---|---|\n";
    for target in catalog::all()? {
        let name = &target.name;
        let Some(found) = folder::read::<serde_json::Value>(&folder.file(name, "json"))? else { continue };
        let origins = found["origins"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |key: &str| {
            let mut texts: Vec<&str> = origins.iter().filter_map(|origin| origin[key].as_str()).collect();
            texts.sort_unstable();
            texts.dedup();
            texts.join(", ")
        };
        let runs = |key: &str| found["runs"][key].as_u64().map_or_else(String::new, |n| n.to_string());
        let orders = target.metrics.iter().filter_map(|metric| found["orders"][metric.name()]["verdict"].as_str());
        let mut orders: Vec<&str> = orders.collect();
        orders.dedup();
        let _ = writeln!(
            page,
            "| [{name}]({name}.md) ([CSV]({name}.csv), [JSON]({name}.json)) | {} | {} of {} | {} | {} | {} |",
            target.title,
            runs("done"),
            runs("of"),
            orders.join(", "),
            of("machine"),
            of("commit")
        );
    }
    page += "\nEvery run has a folder in `runs/` with its resolved experiment and its result.\n";
    page += "[index.html](index.html) has all pages on one.\n";
    write_atomic(folder.file("README", "md"), page.as_bytes())?;
    write_html(folder, scale)
}
