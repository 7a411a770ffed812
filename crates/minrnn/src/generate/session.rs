//! The state of sequences read so far by a model.

use burn::tensor::{Int, Tensor, TensorData};

use super::token_session::{Logits, StateTensor, TokenSession, expect_finite, expect_rows, expect_step};
use crate::model::{BackboneState, SequenceModel};
use crate::nn::{AnyMixer, Mixer, State, StateZip};
use crate::ops::StepCodes;
use crate::{Error, Result, Segments};

/// Tokens (rows × steps) of one pass over prompts. Longer prompts take several passes, so that memory does not grow with their length.
const PASS_TOKENS: usize = 8192;

/// A batch of sequences and the model's state for each. Cloning forks it; the copies share the weights.
///
/// A model in training must be passed as `model.valid()`, without autodiff.
#[derive(Debug, Clone)]
pub struct Session<'m, M: Mixer = AnyMixer> {
    model: &'m SequenceModel<M>,
    state: BackboneState<M::State>,
    batch_size: usize,
}

impl<'m, M: Mixer> Session<'m, M> {
    /// `batch_size` new sequences.
    pub fn new(model: &'m SequenceModel<M>, batch_size: usize) -> Self {
        Self { model, state: model.init_state(batch_size), batch_size }
    }

    /// The current state.
    pub fn state(&self) -> &BackboneState<M::State> {
        &self.state
    }

    /// Reads more of every sequence, in parallel over time, and returns the logits after each row's last token. Rows may differ in length.
    ///
    /// # Errors
    /// When there is not one prompt for each row, a prompt is empty, or a token is not in the vocabulary; nothing is then read.
    pub fn prefill<P: AsRef<[u32]>>(&mut self, prompts: &[P]) -> Result<Logits> {
        if let Some(row) = prompts.iter().position(|prompt| prompt.as_ref().is_empty()) {
            return Err(Error::Data(format!("the prompt of row {row} is empty, expected at least one token; begin it with a start token")));
        }
        let mut logits = Logits::new(vec![0.0; self.batch_size * self.vocab_size()], self.vocab_size());
        self.read(prompts, Some(&mut logits))?;
        Ok(logits)
    }

    /// Reads one token of every sequence and returns the logits after it.
    ///
    /// # Errors
    /// When there is not one token for each row, or a token is not in the vocabulary.
    pub fn step(&mut self, tokens: &[u32]) -> Result<Logits> {
        self.expect_rows(tokens.len())?;
        self.step_rows(&(0..self.batch_size).collect::<Vec<_>>(), tokens)
    }

    /// Reads in passes over the rows that have tokens left, so that a short prompt costs nothing while a long one is read.
    fn read<P: AsRef<[u32]>>(&mut self, prompts: &[P], mut wanted: Option<&mut Logits>) -> Result<()> {
        self.expect_rows(prompts.len())?;
        prompts.iter().try_for_each(|prompt| self.expect_known(prompt.as_ref()))?;
        let mut left: Vec<&[u32]> = prompts.iter().map(AsRef::as_ref).collect();
        loop {
            let rows: Vec<usize> = (0..self.batch_size).filter(|&row| !left[row].is_empty()).collect();
            let Some(longest) = rows.iter().map(|&row| left[row].len()).max() else { return Ok(()) };
            let seq_len = longest.min((PASS_TOKENS / rows.len()).max(1));
            let mut lengths = Vec::with_capacity(rows.len());
            let mut tokens = Vec::with_capacity(rows.len() * seq_len);
            for (i, &row) in rows.iter().enumerate() {
                let (now, later) = left[row].split_at(left[row].len().min(seq_len));
                tokens.extend(now.iter().map(|&token| i64::from(token)));
                tokens.resize((i + 1) * seq_len, 0);
                lengths.push(now.len());
                left[row] = later;
            }
            let steps = match lengths.iter().all(|&length| length == seq_len) {
                true => StepCodes::dense(),
                false => Segments::from_lengths(lengths.clone()).steps(rows.len(), seq_len)?,
            };
            let tokens = self.tensor(tokens, [rows.len(), seq_len]);
            let (logits, state) = self.model.prefill(tokens, &lengths, self.state_of(&rows), &steps);
            self.put_back(&rows, state);
            if let Some(wanted) = &mut wanted {
                let logits = Logits::new(values(logits), self.vocab_size());
                for (i, &row) in rows.iter().enumerate().filter(|(_, row)| left[**row].is_empty()) {
                    wanted.row_mut(row).copy_from_slice(logits.row(i));
                }
            }
        }
    }

    fn state_of(&self, rows: &[usize]) -> BackboneState<M::State> {
        if rows.len() == self.batch_size { self.state.clone() } else { self.state.clone().select_rows(rows) }
    }

    fn put_back(&mut self, rows: &[usize], state: BackboneState<M::State>) {
        if rows.len() == self.batch_size {
            self.state = state;
            return;
        }
        let mut sources: Vec<usize> = (0..self.batch_size).collect();
        for (i, &row) in rows.iter().enumerate() {
            sources[row] = self.batch_size + i;
        }
        self.state = self.state.clone().zip(state, &mut Concatenate).select_rows(&sources);
    }

    fn tensor<const D: usize>(&self, tokens: Vec<i64>, shape: [usize; D]) -> Tensor<D, Int> {
        Tensor::from_data(TensorData::new(tokens, shape), &self.model.device())
    }

    fn expect_rows(&self, found: usize) -> Result<()> {
        if found == self.batch_size {
            return Ok(());
        }
        Err(Error::Shape(format!("the session has {} rows, expected tokens for each, found tokens for {found}", self.batch_size)))
    }

    fn expect_known(&self, tokens: &[u32]) -> Result<()> {
        let vocab_size = self.vocab_size();
        match tokens.iter().find(|&&token| token as usize >= vocab_size) {
            None => Ok(()),
            Some(token) => Err(Error::Data(format!("token id {token} is not known to the model, expected one below {vocab_size}"))),
        }
    }
}

impl<M: Mixer> TokenSession for Session<'_, M> {
    fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn advance<P: AsRef<[u32]>>(&mut self, prompts: &[P]) -> Result<()> {
        self.read(prompts, None)
    }

    fn step_rows(&mut self, rows: &[usize], tokens: &[u32]) -> Result<Logits> {
        expect_step(rows, tokens, self.batch_size)?;
        self.expect_known(tokens)?;
        if rows.is_empty() {
            return Ok(Logits::new(Vec::new(), self.vocab_size()));
        }
        let tokens = self.tensor(tokens.iter().map(|&token| i64::from(token)).collect(), [rows.len()]);
        let (logits, state) = self.model.step(tokens, self.state_of(rows));
        self.put_back(rows, state);
        Ok(Logits::new(values(logits), self.vocab_size()))
    }

    fn select(&self, rows: &[usize]) -> Result<Self> {
        expect_rows(rows, self.batch_size)?;
        Ok(Self { model: self.model, state: self.state.clone().select_rows(rows), batch_size: rows.len() })
    }

    fn values_per_row(&self) -> usize {
        self.model.init_state(1).bytes() / size_of::<f32>()
    }

    fn tensors(&self) -> Vec<StateTensor> {
        let values = |data: &TensorData| data.clone().try_to_vec().expect("states are f32");
        self.state.tensors().iter().map(|(name, data)| (name.clone(), data.shape().to_vec(), values(data))).collect()
    }

    fn restore(&self, batch_size: usize, tensors: Vec<StateTensor>) -> Result<Self> {
        expect_finite(tensors.iter().map(|(name, _, values)| (name.as_str(), values.as_slice())))?;
        let tensors = tensors.into_iter().map(|(name, shape, values)| (name, TensorData::new(values, shape))).collect();
        Ok(Self { model: self.model, state: self.model.init_state(batch_size).load(&tensors)?, batch_size })
    }
}

/// The rows of both states, one after the other.
struct Concatenate;

impl StateZip for Concatenate {
    fn tensor<const D: usize>(&mut self, _: &str, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
        Tensor::cat(vec![a, b], 0)
    }
}

fn values(logits: Tensor<2>) -> Vec<f32> {
    logits.into_data().try_to_vec().expect("logits are f32")
}
