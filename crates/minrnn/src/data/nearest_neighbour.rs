//! Nearest-neighbour search: at every step, the value of the vector nearest to the first one so far.
//!
//! `x_t = (cos θ_t, sin θ_t, v_t)`, `y_t = v_s` with `s = argmax_{2 ≤ s ≤ t} cos(θ_s − θ_1)`
//!
//! where: θ is uniform on the circle and v uniform in [0, 1), both drawn at every step; the first vector is the key of the search and its
//! value is meaningless. Among vectors of equal length the nearest has the largest inner product. The length of a row is uniform in 2 …
//! `max_length`; steps from the second on are scored. The xLSTM study, which defines this task, specifies neither the minimum length nor
//! the first scored step: these are our choice.

use std::f64::consts::TAU;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::batch::check_shape;
use super::numbered_examples::NumberedExamples;
use super::{Batch, BatchSource, EvaluationSet, FixedBatches, IoKind, SequenceTask, Sequences};
use crate::rng::{ChaCha8Rng, Purpose};
use crate::{Error, Result, Segments};

/// Numbers read at a step.
const WIDTH: usize = 3;

/// The task's settings, with the names they have in files. The default length is that of the xLSTM study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NearestNeighbour {
    /// Maximum length of a row, at least 2. Default 64.
    #[serde(rename = "neighbour_length")]
    pub max_length: usize,
    /// Size of the training set, from which rows are drawn with replacement; 0 for an endless set, with a new example in every row. Default
    /// 0; in files it is `train_examples`, shared by several tasks.
    #[serde(skip)]
    pub n_examples: u64,
}

impl Default for NearestNeighbour {
    fn default() -> Self {
        Self { max_length: 64, n_examples: 0 }
    }
}

impl NearestNeighbour {
    /// Checks that there is something to search.
    ///
    /// # Errors
    /// [`Error::Config`] when there is only room for the key.
    pub fn validate(&self) -> Result<()> {
        match self.max_length {
            2.. => Ok(()),
            found => Err(Error::Config(format!(
                "a nearest neighbour needs neighbour_length of at least 2 (the key and a vector), found {found}"
            ))),
        }
    }
}

impl SequenceTask for NearestNeighbour {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: WIDTH }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Values { width: 1 }
    }

    fn longest(&self) -> usize {
        self.max_length
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(NearestNeighbourBatches::new(self.clone(), batch_size, seed, Purpose::TrainData)?))
    }

    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        let task = Self { n_examples: 0, ..self.clone() };
        Ok(Box::new(FixedBatches::new(NearestNeighbourBatches::new(task, batch_size, seed, purpose)?, n_batches)))
    }
}

/// Batches of nearest-neighbour searches.
#[derive(Debug, Clone)]
pub struct NearestNeighbourBatches {
    max_length: usize,
    examples: NumberedExamples,
    batch_size: usize,
}

impl NearestNeighbourBatches {
    /// Searches of `task`. For evaluation use another `purpose` (or `seed`) and wrap it in [`FixedBatches`].
    ///
    /// # Errors
    /// [`Error::Config`] when `task` is not valid, `batch_size` is 0, or a batch would be too large.
    pub fn new(task: NearestNeighbour, batch_size: usize, seed: u64, purpose: Purpose) -> Result<Self> {
        task.validate()?;
        let NearestNeighbour { max_length, n_examples } = task;
        check_shape(batch_size, max_length.saturating_mul(WIDTH))?;
        Ok(Self { max_length, examples: NumberedExamples { n: n_examples, seed, purpose }, batch_size })
    }

    /// A row as its steps.
    fn row(&self, rng: &mut ChaCha8Rng) -> Vec<[f32; WIDTH]> {
        let length = rng.random_range(2..=self.max_length as u64);
        let step = |_| {
            let (angle, value) = (TAU * rng.random::<f64>(), rng.random::<f32>());
            [angle.cos() as f32, angle.sin() as f32, value]
        };
        (0..length).map(step).collect()
    }
}

/// The answers of a row; 0 at its first step.
fn answers(row: &[[f32; WIDTH]]) -> Vec<f32> {
    let (mut nearest, mut value) = (f32::NEG_INFINITY, 0.0);
    let answer = |(step, x): (usize, &[f32; WIDTH])| {
        let nearness = x[0] * row[0][0] + x[1] * row[0][1];
        if step > 0 && nearness > nearest {
            (nearest, value) = (nearness, x[2]);
        }
        value
    };
    row.iter().enumerate().map(answer).collect()
}

impl BatchSource for NearestNeighbourBatches {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let mut rng = self.examples.batch(iteration, micro);
        let rows: Vec<_> = (0..self.batch_size).map(|_| self.row(&mut self.examples.draw(&mut rng))).collect();
        let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
        let (batch_size, seq_len) = (rows.len(), lengths.iter().copied().max().unwrap_or(0));
        let n = batch_size * seq_len;
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * WIDTH], vec![0.0; n], vec![0.0; n]);
        for (b, row) in rows.iter().enumerate() {
            let start = b * seq_len;
            inputs[start * WIDTH..][..row.len() * WIDTH].copy_from_slice(row.as_flattened());
            targets[start..][..row.len()].copy_from_slice(&answers(row));
            mask[start + 1..start + row.len()].fill(1.0);
        }
        Ok(Batch {
            inputs: Sequences::Values { values: inputs, width: WIDTH },
            targets: Sequences::Values { values: targets, width: 1 },
            mask: Some(mask),
            segments: Segments::from_lengths(lengths),
            batch_size,
            seq_len,
        })
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.max_length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batch(task: &NearestNeighbour, batch_size: usize, at: u64) -> Batch {
        NearestNeighbourBatches::new(task.clone(), batch_size, 42, Purpose::TrainData).unwrap().batch(at, 0).unwrap()
    }

    fn values(batch: &Batch) -> (&[f32], &[f32]) {
        (batch.inputs.values(), batch.targets.values())
    }

    #[test]
    fn a_search_worked_by_hand() {
        // The key points along x; its value is ignored. Then: behind it, beside it, beside it on the other side, almost along it, behind it.
        let row = [[1.0, 0.0, 0.9], [-1.0, 0.0, 0.1], [0.0, 1.0, 0.2], [0.0, -1.0, 0.3], [0.8, 0.6, 0.4], [-0.6, 0.8, 0.5]];
        assert_eq!(answers(&row), [0.0, 0.1, 0.2, 0.2, 0.4, 0.4]);
    }

    #[test]
    fn lengths_angles_and_values_are_uniform() {
        let batch = batch(&NearestNeighbour::default(), 2000, 0);
        let lengths = batch.segments.lengths().unwrap();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let found = mean(&lengths.iter().map(|&length| length as f64).collect::<Vec<_>>());
        assert!((found - 33.0).abs() < 2.0 && lengths.iter().min() == Some(&2) && lengths.iter().max() == Some(&64), "{found}");
        let (inputs, _) = values(&batch);
        let real: Vec<&[f32]> = inputs.chunks_exact(3).enumerate().filter(|(i, _)| i % 64 < lengths[i / 64]).map(|(_, x)| x).collect();
        for (column, expected) in [(0, 0.0), (1, 0.0), (2, 0.5)] {
            let found = mean(&real.iter().map(|x| f64::from(x[column])).collect::<Vec<_>>());
            assert!((found - expected).abs() < 0.02, "column {column}: {found}");
        }
        assert!(real.iter().all(|x| (x[0] * x[0] + x[1] * x[1] - 1.0).abs() < 1e-6 && (0.0..1.0).contains(&x[2])));
    }

    #[test]
    fn a_fixed_set_holds_so_many_examples() {
        let task = NearestNeighbour { max_length: 2, n_examples: 3 };
        let batch = batch(&task, 64, 0);
        let mut rows: Vec<&[f32]> = values(&batch).0.chunks_exact(6).collect();
        rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
        rows.dedup();
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn a_key_alone_is_refused() {
        let task = NearestNeighbour { max_length: 1, ..NearestNeighbour::default() };
        assert!(
            NearestNeighbourBatches::new(task, 1, 0, Purpose::TrainData)
                .unwrap_err()
                .to_string()
                .contains("neighbour_length of at least 2")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn answers_are_those_of_a_search_by_distance(max_length in 2_usize..70, at: u64) {
            let task = NearestNeighbour { max_length, ..NearestNeighbour::default() };
            let found = batch(&task, 4, at);
            prop_assert_eq!(&batch(&task, 4, at), &found);
            let ((inputs, targets), lengths, mask) = (values(&found), found.segments.lengths().unwrap(), found.mask.as_ref().unwrap());
            let x = |row: usize, step: usize| &inputs[3 * (row * found.seq_len + step)..][..3];
            let distance = |row: usize, step: usize| {
                let (x, key) = (x(row, step), x(row, 0));
                f64::from(x[0] - key[0]).powi(2) + f64::from(x[1] - key[1]).powi(2)
            };
            for (row, &length) in lengths.iter().enumerate() {
                for step in 0..found.seq_len {
                    let at = row * found.seq_len + step;
                    prop_assert_eq!(mask[at] == 1.0, (1..length).contains(&step));
                    if mask[at] == 1.0 {
                        let least = (1..=step).map(|s| distance(row, s)).fold(f64::INFINITY, f64::min);
                        // Rounding may swap vectors at almost the same distance.
                        prop_assert!((1..=step).any(|s| x(row, s)[2] == targets[at] && distance(row, s) <= least + 1e-6));
                    }
                }
            }
        }
    }
}
