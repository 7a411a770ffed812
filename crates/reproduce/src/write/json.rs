//! A target's results with everything known about every run.

use serde_json::{Map, Value, json};

use crate::{Filled, Grid, Metric, Run};

/// The results as one object.
pub fn json(grid: &Grid) -> Value {
    let target = grid.target;
    let cells: Vec<Value> = grid.iter().map(|(row, column, cell)| of_cell(grid, row, column, cell)).collect();
    let order = |&metric: &Metric| {
        Some((metric.name().to_owned(), json!({ "verdict": grid.order(metric)?.verdict(), "pairs": grid.order(metric) })))
    };
    let orders: Map<String, Value> = target.metrics.iter().filter_map(order).collect();
    json!({
        "format": 1,
        "name": target.name,
        "title": target.title,
        "source": target.source,
        "scale": grid.scale.name(),
        "command": grid.command,
        "origins": grid.origins(),
        "settings": target.effort(grid.scale).settings,
        "notes": target.notes.iter().chain(&target.effort(grid.scale).notes).collect::<Vec<_>>(),
        "baselines": grid.baselines,
        "orders": orders,
        "runs": { "done": grid.progress().0, "of": grid.progress().1 },
        "cells": cells,
    })
}

fn of_cell(grid: &Grid, row: usize, column: usize, cell: &Filled) -> Value {
    let mut metrics = Map::new();
    for &metric in &grid.target.metrics {
        let published = grid.published(metric, row, column);
        let summary = grid.summary(metric, row, column);
        metrics.insert(
            metric.name().to_owned(),
            json!({
                "published": (!published.text.is_empty()).then_some(published.text),
                "published_value": published.value,
                "published_deviation": published.deviation,
                "recorded": Some(grid.target.recorded(metric, row, column)).filter(|text| !text.is_empty()),
                "mean": summary.map(|summary| summary.mean),
                "deviation": summary.and_then(|summary| summary.deviation),
                "interval": summary.and_then(|summary| summary.reach()),
                "verdict": grid.verdict(metric, row, column),
                "values": grid.values(metric, row, column),
            }),
        );
    }
    let (row_label, column_label) = (&grid.target.rows[row].label, &grid.target.columns[column].label);
    let mut object = json!({ "row": row_label, "column": column_label, "metrics": metrics });
    if let Some(reading) = grid.reading(row, column) {
        object["preset"] = reading.into();
    }
    match cell {
        Filled::Quoted(why) => object["quoted"] = why.as_str().into(),
        Filled::Trained(runs) => object["runs"] = runs.iter().map(of_run).collect(),
        Filled::Timed(line) => object["measurement"] = json!(line),
        Filled::Untimed(sentence) => object["not_run"] = sentence.as_str().into(),
        Filled::Counted(parameters) => object["parameters"] = (*parameters).into(),
    }
    object
}

fn of_run((seed, run): &(u64, Run)) -> Value {
    match run {
        Run::Done(outcome) => json!({ "seed": seed, "result": outcome }),
        Run::Failed(sentence) => json!({ "seed": seed, "failed": sentence }),
        Run::Refused(sentence) => json!({ "seed": seed, "not_run": sentence }),
        Run::Outdated(outcome, why) => json!({ "seed": seed, "outdated": why.to_string(), "outdated_result": outcome }),
        Run::Begun(begun) => json!({ "seed": seed, "begun": begun }),
        Run::Elsewhere => json!({ "seed": seed, "elsewhere": true }),
        Run::Open => json!({ "seed": seed }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grid, target};
    use super::*;

    #[test]
    fn every_run_and_every_number_is_there() {
        let target = target();
        let value = json(&grid(&target));
        let first = &value["cells"][0];
        assert_eq!(first["metrics"]["accuracy-percent"]["mean"], 90.0);
        assert_eq!(first["metrics"]["accuracy-percent"]["published_deviation"], 2.0);
        assert_eq!(first["runs"][1]["result"]["curve"][2]["iteration"], 40);
        assert_eq!(value["cells"][1]["runs"][0]["failed"], "the loss\nis not finite");
        assert_eq!(value["cells"][2]["quoted"], "there is no code of it here");
        assert_eq!(value["origins"][0]["commit"], "abc1234");
        assert_eq!(value["notes"], json!(["A note.", "A note of this scale."]));
    }
}
