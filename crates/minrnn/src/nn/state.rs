//! The state of a mixer: a plain value of tensors whose first dimension is the batch.

use std::collections::BTreeMap;

use burn::tensor::{Int, Tensor, TensorData};

use crate::{Error, Result};

/// A state is a value: cloning forks it, its tensors are saved by name, and its rows can be selected or reset.
///
/// An implementation lists its tensors once, in [`zip`](State::zip); everything else follows from that.
pub trait State: Clone + std::fmt::Debug + Send {
    /// Calls `f` with each tensor of `self` and its counterpart in `other`, and replaces the tensor by the result.
    ///
    /// Both states have the same structure, and the first dimension of every tensor is the batch.
    ///
    /// # Panics
    /// When the structures differ.
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self;

    /// Detaches the state from the graph that computed it.
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

    /// Resets the rows whose flag is true to those of `initial`.
    ///
    /// # Panics
    /// When there is not one flag for each row.
    fn reset_rows(self, rows: &[bool], initial: Self) -> Self {
        self.zip(initial, &mut ResetRows(rows))
    }

    /// Name, shape and values of every tensor.
    fn tensors(&self) -> Vec<(String, TensorData)> {
        let mut collect = Collect::default();
        self.clone().zip(self.clone(), &mut collect);
        collect.tensors
    }

    /// A state with the structure of `self` and the values of `tensors`, as returned by [`tensors`](State::tensors).
    ///
    /// # Errors
    /// When a tensor is missing, has another shape, is not f32, or contains NaN or ±∞. The batch size must be that of `self`; the length of a growing
    /// tensor is taken from the file.
    fn load(self, tensors: &BTreeMap<String, TensorData>) -> Result<Self> {
        let mut load = Load { path: Path::default(), tensors, problem: None };
        let state = self.clone().zip(self, &mut load);
        load.problem.map_or(Ok(state), Err)
    }

    /// Bytes of the state's values.
    fn bytes(&self) -> usize {
        self.tensors().iter().map(|(_, data)| data.as_bytes().len()).sum()
    }
}

/// The visitor called by [`State::zip`] for each pair of tensors.
pub trait StateZip {
    /// Combines the two tensors of this name into their replacement.
    fn tensor<const D: usize>(&mut self, name: &str, a: Tensor<D>, b: Tensor<D>) -> Tensor<D>;

    /// As `tensor`, for a tensor whose second dimension grows with the steps read, such as a cache. [`State::zip`] first brings both to the
    /// same length; a loaded one may have any.
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
    /// When the numbers of states differ.
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
    /// When only one of the two has a state.
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        zip_if_any(self, other, |a, b| a.zip(b, f))
    }
}

/// `zip` of an optional part of two states; `None` if neither has it.
///
/// # Panics
/// When only one has the part.
pub(crate) fn zip_if_any<T>(a: Option<T>, b: Option<T>, zip: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(zip(a, b)),
        (None, None) => None,
        _ => panic!("expected two states of one structure, found a part that only one of them has; the states belong to different models"),
    }
}

/// Refuses a state without `batch_size` rows, for calls without steps, where no operation would notice.
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
    /// The first problem found.
    problem: Option<Error>,
}

impl Load<'_> {
    /// The saved tensor of this name; its dimension `growing` may have any size but 0.
    fn take<const D: usize>(&mut self, name: &str, a: Tensor<D>, growing: Option<usize>) -> Tensor<D> {
        match self.find(&self.path.join(name), a.dims(), growing) {
            Ok(data) => Tensor::from_data(data, &a.device()),
            Err(problem) => {
                self.problem.get_or_insert(problem);
                a
            }
        }
    }

    fn find<const D: usize>(&self, name: &str, expected: [usize; D], growing: Option<usize>) -> Result<TensorData> {
        let Some(data) = self.tensors.get(name) else {
            return Err(Error::Shape(format!("the state has no '{name}'; it belongs to another model")));
        };
        let found: &[usize] = data.shape();
        let fits = found.len() == D && (0..D).all(|i| if growing == Some(i) { found[i] > 0 } else { found[i] == expected[i] });
        if !fits {
            let found = found.to_vec();
            return Err(Error::Shape(format!(
                "state '{name}': expected shape {expected:?}, found {found:?}; the state belongs to another model"
            )));
        }
        let Ok(values) = data.try_to_vec::<f32>() else {
            let found = data.dtype();
            return Err(Error::Data(format!("state '{name}': expected numbers of type F32, found {found:?}; give what was saved")));
        };
        match values.iter().find(|value| !value.is_finite()) {
            None => Ok(data.clone()),
            Some(value) => Err(Error::Data(format!("state '{name}' holds {value}, expected finite numbers; begin with a new state"))),
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
