//! The loss over the iterations.

use super::chart::{Chart, range};
use crate::train::{Record, smooth};

/// The share of the updates, at the beginning, whose losses need not fit the picture, as they fall from the untrained loss.
const FALL: f64 = 0.03;

pub(super) fn curves(records: &[Record], refit_at: Option<u64>, loss: &str) -> String {
    let mut train: Vec<Vec<(f64, f64)>> = vec![Vec::new(); 2];
    let mut test = Vec::new();
    for record in records {
        match *record {
            Record::Train { iteration, loss, .. } => {
                train[usize::from(refit_at.is_some_and(|at| iteration > at))].push((iteration as f64, loss))
            }
            Record::Eval { iteration, test_loss, .. } => test.push((iteration as f64, test_loss)),
        }
    }
    let Some(last) = train.iter().flatten().chain(&test).map(|point| point.0).reduce(f64::max) else { return String::new() };
    let smoothed: Vec<Vec<(f64, f64)>> = train.iter().map(smooth).collect();
    let after_the_fall =
        |points: &Vec<(f64, f64)>| points.iter().map(|point| point.1).skip((FALL * points.len() as f64) as usize).collect::<Vec<_>>();
    let seen = smoothed.iter().flat_map(after_the_fall).chain(test.iter().map(|point| point.1));
    let mut chart = Chart::new([920.0, 300.0], 0.0..last, range(seen));
    for (points, smooth) in train.iter().zip(&smoothed) {
        chart.line("faint", points);
        chart.line("model", smooth);
    }
    chart.dots(&test);
    if let Some(at) = refit_at {
        chart.mark(at as f64);
    }
    let held_out = if test.is_empty() { "" } else { "; dots: on what is held out" };
    let refit = if refit_at.is_some() { "; after the vertical line: retrained on all data" } else { "" };
    format!("<p class=\"note\">{loss}, batch by batch and smoothed{held_out}{refit}</p>\n")
        + &chart.svg("iteration", "The loss over the iterations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_smoothed_apart() {
        let record = |iteration: u64| {
            let loss = if iteration <= 100 { 1.0 } else { 2.0 };
            Record::Train { iteration, loss, lr: 0.1, grad_norm: 1.0, tokens_per_s: 1.0 }
        };
        let records: Vec<Record> = (1..=200).map(record).collect();
        let svg = curves(&records, Some(100), "loss");
        // Two flat lines, each with one height.
        let models: Vec<&str> = svg.split("class=\"model\" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect();
        assert_eq!(models.len(), 2);
        for path in models {
            let heights: Vec<&str> = path.split(['M', 'L']).skip(1).filter_map(|point| point.split(' ').nth(1)).collect();
            assert!(heights.len() == 100 && heights.iter().all(|height| *height == heights[0]), "{path}");
        }
        assert!(svg.contains("retrained on all data"));
        assert_eq!(curves(&[], None, "loss"), "");
    }
}
