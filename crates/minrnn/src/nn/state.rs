//! What a mixer carries between calls: a plain value of tensors whose first dimension is the batch.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor, TensorData};

use crate::{Error, Result};

/// A state is a value: cloning forks it, its tensors are saved by name, and rows of it can be chosen or reset.
///
/// An implementation lists its tensors once, in [`zip`](State::zip); everything else follows from that.
pub trait State: Clone + std::fmt::Debug + Send {
    /// Calls `f` with each tensor of `self` and its counterpart in `other`, and puts the answers in their places.
    ///
    /// Both states have the same structure, and the first dimension of every tensor is the batch.
    ///
    /// # Panics
    /// When the structures differ.
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self;

    /// Cuts the state off the graph it was computed by.
    fn detach(self) -> Self {
        self.clone().zip(self, &mut Detach)
    }

    /// The state of the rows `rows`, in that order; a row may be chosen several times.
    ///
    /// # Panics
    /// When a row does not exist.
    fn select_rows(self, rows: &[usize]) -> Self {
        self.clone().zip(self, &mut SelectRows(rows))
    }

    /// Puts the rows whose flag is true back to those of `initial`.
    ///
    /// # Panics
    /// When the flags are not one for each row.
    fn reset_rows(self, rows: &[bool], initial: Self) -> Self {
        self.zip(initial, &mut ResetRows(rows))
    }

    /// Name, shape and values of every tensor.
    fn tensors(&self) -> Vec<(String, TensorData)> {
        let mut collect = Collect::default();
        self.clone().zip(self.clone(), &mut collect);
        collect.tensors
    }

    /// A state of the structure of `self` with the values of `tensors`, as [`tensors`](State::tensors) gave them.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape; the batch size is that of `self`, the length of a growing tensor that of the file.
    fn load(self, tensors: &BTreeMap<String, TensorData>) -> Result<Self> {
        let mut load = Load { path: Path::default(), tensors, problem: None };
        let state = self.clone().zip(self, &mut load);
        load.problem.map_or(Ok(state), |problem| Err(Error::Shape(problem)))
    }

    /// Bytes of the state's values.
    fn bytes(&self) -> usize {
        self.tensors().iter().map(|(_, data)| data.as_bytes().len()).sum()
    }
}

/// What [`State::zip`] calls for each pair of tensors.
pub trait StateZip {
    /// Combines the tensors of this name into the one that takes their place.
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, b: Tensor<D>) -> Tensor<D>;

    /// The same for a tensor whose second dimension grows with the steps read, such as a cache. [`State::zip`] brings both to the same
    /// length first; a loaded one may have any.
    fn growing<const D: usize>(&mut self, name: &str, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        self.tensor(name, a, b)
    }

    /// The following tensors belong to the part `name`, until [`exit`](StateZip::exit).
    fn enter(&mut self, _name: &str) {}

    /// Ends the part last entered.
    fn exit(&mut self) {}
}

/// Nothing is carried.
impl State for () {
    fn zip<F: StateZip>(self, _: Self, _: &mut F) -> Self {}
}

impl<S: State> State for Vec<S> {
    /// # Panics
    /// When the two have not as many states.
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let (n, found) = (self.len(), other.len());
        assert!(n == found, "expected another list of {n} states, found one of {found}; the states belong to different models");
        let zip = |(i, (a, b)): (usize, (S, S))| {
            f.enter(&i.to_string());
            let zipped = a.zip(b, f);
            f.exit();
            zipped
        };
        self.into_iter().zip(other).enumerate().map(zip).collect()
    }
}

impl<S: State> State for Option<S> {
    /// # Panics
    /// When one of the two has a state and the other none.
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        zip_if_any(self, other, |a, b| a.zip(b, f))
    }
}

/// `zip` of two parts of states that have them, nothing of two that have none.
///
/// # Panics
/// When one has the part and the other does not.
pub(crate) fn zip_if_any<T>(a: Option<T>, b: Option<T>, zip: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(zip(a, b)),
        (None, None) => None,
        _ => panic!("expected two states of one structure, found a part that only one of them has; the states belong to different models"),
    }
}

/// Refuses a state that is not one of `batch_size` rows, where no step is there that would meet it.
///
/// # Panics
/// When it is not.
pub(crate) fn expect_rows<S: State>(state: &S, batch_size: usize) {
    state.clone().zip(state.clone(), &mut Rows(batch_size));
}

struct Rows(usize);

impl StateZip for Rows {
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        let (expected, found) = (self.0, a.dims()[0]);
        assert!(found == expected, "expected a state of {expected} rows, found {found} of '{name}'; begin with init_state({expected})");
        a
    }
}

struct Detach;

impl StateZip for Detach {
    fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        a.detach()
    }
}

struct SelectRows<'a>(&'a [usize]);

impl StateZip for SelectRows<'_> {
    fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        let rows: Vec<i64> = self.0.iter().map(|&row| row as i64).collect();
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [self.0.len()]), &a.device());
        a.select(0, rows)
    }
}

struct ResetRows<'a>(&'a [bool]);

impl StateZip for ResetRows<'_> {
    fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        let batch_size = a.dims()[0];
        assert_eq!(self.0.len(), batch_size, "one flag for each of the {batch_size} rows");
        let mut shape = [1; D];
        shape[0] = batch_size;
        let reset = Tensor::<D, burn::tensor::Bool>::from_data(TensorData::new(self.0.to_vec(), shape), &a.device());
        let reset = reset.expand(a.dims());
        a.mask_where(reset, b)
    }
}

#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn join(&self, name: &str) -> String {
        self.0.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")
    }
}

#[derive(Default)]
struct Collect {
    path: Path,
    tensors: Vec<(String, TensorData)>,
}

impl StateZip for Collect {
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        self.tensors.push((self.path.join(name), a.clone().into_data()));
        a
    }

    fn enter(&mut self, name: &str) {
        self.path.0.push(name.to_owned());
    }

    fn exit(&mut self) {
        self.path.0.pop();
    }
}

struct Load<'a> {
    path: Path,
    tensors: &'a BTreeMap<String, TensorData>,
    problem: Option<String>,
}

impl Load<'_> {
    /// The saved tensor of this name; its dimension `growing` may have any size but 0.
    fn take<const D: usize>(&mut self, name: &str, a: Tensor<D>, growing: Option<usize>) -> Tensor<D> {
        let name = self.path.join(name);
        let expected = a.dims();
        let fits =
            |found: &[usize]| found.len() == D && (0..D).all(|i| if growing == Some(i) { found[i] > 0 } else { found[i] == expected[i] });
        match self.tensors.get(&name) {
            Some(data) if fits(data.shape()) => Tensor::from_data(data.clone(), &a.device()),
            Some(data) => {
                let found = data.shape().to_vec();
                self.problem.get_or_insert(format!(
                    "state '{name}': expected shape {expected:?}, found {found:?}; the state belongs to another model"
                ));
                a
            }
            None => {
                self.problem.get_or_insert(format!("the state has no '{name}'; it belongs to another model"));
                a
            }
        }
    }
}

impl StateZip for Load<'_> {
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        self.take(name, a, None)
    }

    fn growing<const D: usize>(&mut self, name: &str, a: Tensor<D>, _: Tensor<D>) -> Tensor<D> {
        self.take(name, a, Some(1))
    }

    fn enter(&mut self, name: &str) {
        self.path.0.push(name.to_owned());
    }

    fn exit(&mut self) {
        self.path.0.pop();
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::super::Hidden;
    use super::*;

    fn hidden(rows: usize) -> Hidden {
        Hidden { h: Tensor::zeros([rows, 2], &Device::flex()) }
    }

    #[test]
    #[should_panic(expected = "another list of 1 states, found one of 0")]
    fn lists_of_other_lengths_are_not_cut_off() {
        vec![hidden(1)].reset_rows(&[true], vec![]);
    }

    #[test]
    #[should_panic(expected = "a part that only one of them has")]
    fn a_part_that_one_state_lacks_is_not_left_out() {
        Some(hidden(1)).reset_rows(&[true], None);
    }

    #[test]
    #[should_panic(expected = "a state of 2 rows, found 3")]
    fn a_state_of_other_rows_is_refused() {
        expect_rows(&hidden(2), 2);
        expect_rows(&hidden(3), 2);
    }
}
