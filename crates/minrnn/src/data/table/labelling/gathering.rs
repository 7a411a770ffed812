//! Sequences of files with their labels.

use super::super::known_names::KnownNames;
use super::super::label::Label;
use super::super::series::{Series, labels};
use super::super::{Frame, Texts};
use super::table::Labels;
use crate::suggestion::suggestion;
use crate::{Error, Result};

/// Sequences of files with their labels.
pub(super) struct Gathered {
    pub series: Vec<Series>,
    pub labels: Labels,
}

impl Gathered {
    pub fn new(label: Label) -> Self {
        let labels = match label {
            Label::Class => Labels::Classes(Vec::new()),
            Label::Number => Labels::Numbers(Vec::new()),
        };
        Self { series: Vec::new(), labels }
    }

    /// Adds the sequences of `frame` and returns their indices; their classes must be among `names`, though the same number may be written
    /// differently.
    pub fn add(&mut self, frame: &Frame, names: &[String], target: &str) -> Result<Vec<usize>> {
        let [groups, targets] = [&frame.texts[0], &frame.texts[1]];
        let first = self.series.len();
        match &mut self.labels {
            Labels::Classes(classes) => {
                let classes_known = KnownNames::of_values(names.iter().map(String::as_str));
                let known = |name: &String| {
                    let found = classes_known.find(name).map(|at| at as u32);
                    let unknown = || suggestion(name, names.iter().map(String::as_str));
                    found.ok_or_else(|| Error::Data(format!("the class '{name}' was not seen in training{}", unknown())))
                };
                let ids = targets.distinct().iter().map(known).collect::<Result<Vec<u32>>>()?;
                classes.extend(labels_by(&ids, frame, target, Label::Class)?.into_iter().map(|label| ids[label as usize]));
            }
            Labels::Numbers(numbers) => {
                let known = numbers_of(targets, target)?;
                numbers.extend(labels_by(&known, frame, target, Label::Number)?.into_iter().map(|label| known[label as usize]));
            }
        }
        self.series.extend(Series::of(frame, Some(groups))?);
        Ok((first..self.series.len()).collect())
    }

    /// The kind of each of the first `n` sequences, for a split with all kinds in all parts, and the number of kinds.
    pub fn kinds(&self, n: usize, n_classes: usize) -> (Vec<u32>, usize) {
        match &self.labels {
            Labels::Classes(classes) => (classes[..n].to_vec(), n_classes),
            Labels::Numbers(_) => (vec![0; n], 1),
        }
    }
}

/// Which of the different labels of `frame` each sequence has; labels that mean the same, as 1 and 1.0 do, are one.
///
/// # Errors
/// When a sequence has more than one.
pub(super) fn labels_by<T: PartialEq>(meanings: &[T], frame: &Frame, target: &str, label: Label) -> Result<Vec<u32>> {
    labels(&frame.texts[0], &frame.texts[1], target, label, |a, b| meanings[a as usize] == meanings[b as usize])
}

/// The distinct labels of the column `target` as numbers.
pub(super) fn numbers_of(targets: &Texts, target: &str) -> Result<Vec<f64>> {
    targets.distinct().iter().map(|text| number(text, target)).collect()
}

fn number(text: &str, target: &str) -> Result<f64> {
    let is_usable = |x: &f64| x.abs() <= f64::from(f32::MAX);
    text.parse().ok().filter(is_usable).ok_or_else(|| {
        Error::Data(format!("the column '{target}' holds '{text}', expected a finite number for each sequence; is it the right column?"))
    })
}
