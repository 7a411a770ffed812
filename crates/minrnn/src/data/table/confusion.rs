//! The confusion of classes.

/// A confusion matrix: how often each class was predicted for each true class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confusion {
    names: Vec<String>,
    /// Row-major, `[true class, predicted class]`.
    counts: Vec<u64>,
}

/// How well one class is recognised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfClass {
    /// The share of its cases that were found; `None` if it has none.
    pub recall: Option<f64>,
    /// The share of correct cases among those predicted as this class; `None` if there were none.
    pub precision: Option<f64>,
    /// Number of its cases.
    pub n: u64,
}

impl Confusion {
    /// An empty matrix.
    pub(super) fn new(names: Vec<String>) -> Self {
        let counts = vec![0; names.len() * names.len()];
        Self { names, counts }
    }

    /// Counts a case of `class` with the prediction `logits`; returns the predicted class. If the true class shares the largest logit with
    /// another, the other is taken as predicted.
    pub(super) fn add(&mut self, class: usize, logits: &[f32]) -> usize {
        let others = (0..logits.len()).filter(|&other| other != class);
        let rival = others.max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        let predicted = rival.filter(|&rival| logits[rival] >= logits[class] || logits[class].is_nan()).unwrap_or(class);
        self.counts[class * self.names.len() + predicted] += 1;
        predicted
    }

    /// Names of the classes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of cases of `class` predicted as `predicted`.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn count(&self, class: usize, predicted: usize) -> u64 {
        self.counts[class * self.names.len()..][..self.names.len()][predicted]
    }

    /// Number of cases of `class`.
    pub fn n_of(&self, class: usize) -> u64 {
        self.counts[class * self.names.len()..][..self.names.len()].iter().sum()
    }

    /// Number of cases.
    pub fn n(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Number of correct predictions.
    pub fn right(&self) -> u64 {
        (0..self.names.len()).map(|class| self.count(class, class)).sum()
    }

    /// How well `class` is recognised.
    pub fn of_class(&self, class: usize) -> OfClass {
        let share = |of: u64| (of > 0).then(|| self.count(class, class) as f64 / of as f64);
        let taken = (0..self.names.len()).map(|other| self.count(other, class)).sum();
        let n = self.n_of(class);
        OfClass { recall: share(n), precision: share(taken), n }
    }

    /// A JSON object for each class, with its predictions in the order of [`names`](Self::names).
    pub fn to_json(&self) -> Vec<serde_json::Value> {
        let object = |(class, name): (usize, &String)| {
            let of = self.of_class(class);
            let said: Vec<u64> = (0..self.names.len()).map(|predicted| self.count(class, predicted)).collect();
            serde_json::json!({"class": name, "n": of.n, "recall": of.recall, "precision": of.precision, "predicted": said})
        };
        self.names.iter().enumerate().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_by_hand_and_a_tie_is_not_right() {
        let mut confusion = Confusion::new(["a", "b", "c"].map(str::to_owned).to_vec());
        for (class, logits) in [(0, [2.0, 1.0, 0.0]), (0, [1.0, 2.0, 0.0]), (0, [1.0, 1.0, 0.0]), (1, [0.0, 3.0, 0.0]), (1, [f32::NAN; 3])]
        {
            confusion.add(class, &logits);
        }
        assert_eq!((confusion.n(), confusion.right(), confusion.n_of(0), confusion.count(0, 1)), (5, 2, 3, 2));
        assert_eq!(confusion.of_class(0).recall, Some(1.0 / 3.0));
        assert_eq!(confusion.of_class(1).precision, Some(1.0 / 3.0));
        assert_eq!(confusion.of_class(2).recall, None);
    }
}
