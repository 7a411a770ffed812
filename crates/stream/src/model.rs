//! Steps in, predictions out: first layers, blocks, last layers.

use alloc::vec::Vec;
use alloc::{format, string::String};
use core::fmt;

use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::Scratch;
use minrnn_model::{POLICY_PLACES, POLICY_TENSOR, TableTask};

use crate::block::Block;
use crate::end::{End, gather};
use crate::front::Front;
use crate::inside::Inside;
use crate::pass::{Memory, Pass, Sessions};
use crate::past::PastShape;
use crate::reads::{Reads, Steps};
use crate::shared::Shared;
use crate::source::Source;
use crate::state::{State, StateShape, first_row};
use crate::workers;
use crate::workspace::{Workspace, room};
use crate::{CheckedConfig, Error, ModelConfig, Result};

/// Steps of one pass over prompts: longer ones take several, so that memory does not grow with their length. A caller that
/// reads a prompt in pieces cuts it at multiples of as many.
pub const PASS_STEPS: usize = 512;
/// Most outputs of one pass that wants them after every step.
const PASS_OUTPUTS: usize = 1 << 22;

/// A trained model, ready to run. Sessions share it; what they remember is in a [`State`], and a [`Workspace`] lends the memory of a
/// call.
///
/// What it [`reads`](Model::reads) is tokens or numbers. After a step it gives [`outputs`](Model::outputs) numbers: logits of the next token
/// or of classes, values to come, or the action of a policy.
///
/// A model of text:
///
/// ```no_run
/// use minrnn_stream::{Model, Sampler, Sampling, Workspace};
///
/// let model = Model::load("model.minrnn")?;
/// let (mut state, mut workspace) = (model.init_state(1)?, Workspace::new());
/// let mut logits = vec![0.0; model.outputs()];
/// let mut sampler = Sampler::new(Sampling::default())?;
/// model.prefill(&[[1, 2, 3]], &mut state, &mut logits, &mut workspace)?;
/// for _ in 0..10 {
///     let token = sampler.sample(&mut logits, &[])?;
///     model.step(&[token], &mut state, &mut logits, &mut workspace)?;
/// }
/// # Ok::<(), minrnn_stream::Error>(())
/// ```
///
/// A model that was trained on a table, such as one that classifies the state of a machine by two numbers at each step; the file also says what the
/// columns were and what the outputs mean ([`PackedModel::table`](crate::PackedModel::table)), and [`TableSessions`](crate::TableSessions) read rows
/// in the units of the table by it:
///
/// ```no_run
/// use minrnn_stream::{PackedModel, TableSessions};
///
/// let PackedModel { model, table, .. } = PackedModel::read("machines.minrnn")?;
/// let table = table.expect("it was trained on a table");
/// // One session for each machine.
/// let mut machines = TableSessions::new(&model, &table, 100)?;
/// // Machine 7 sends a row: one step, and the probability of each class.
/// let shares = machines.step(&model, &table, &[7], &[21.5, 0.03])?;
/// println!("{shares:?} of {:?}", table.classes());
/// # Ok::<(), minrnn_stream::Error>(())
/// ```
pub struct Model {
    config: CheckedConfig,
    state_shape: StateShape,
    front: Front,
    blocks: Vec<Block>,
    end: End,
    /// What a session remembers before its first step.
    first: Vec<f32>,
    /// Multiply-adds for one row of the residual stream, without those with past tokens.
    row_macs: usize,
    parameters: usize,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelConfig { mixer, d_model, n_layers, .. } = *self.config;
        let mut sizes = f.debug_struct("Model");
        sizes.field("mixer", &mixer).field("d_model", &d_model).field("n_layers", &n_layers).field("reads", &self.reads());
        sizes.field("outputs", &self.outputs()).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl Model {
    /// The model of a checkpoint: `weights` are taken out, and their matrices stored in `format` (embedding and head as int8 at least).
    ///
    /// # Errors
    /// When the configuration is not valid, or the weights are not those of such a model.
    #[cfg(feature = "std")]
    pub fn new(config: &ModelConfig, weights: &mut minrnn_model::Weights, format: minrnn_model::WeightFormat) -> Result<Self> {
        let model = Self::read(config, &mut crate::source::Checkpoint { weights, format })?;
        weights.expect_empty()?;
        Ok(model)
    }

    pub(crate) fn read(config: &ModelConfig, source: &mut dyn Source) -> Result<Self> {
        let decision = config.decision || source.has(POLICY_TENSOR);
        let config = ModelConfig { decision, ..config.clone() }.checked()?;
        // Tensors that are left over are refused by the caller.
        let front = Front::read(&config, source)?;
        let pasts = PastShape::of(&config);
        let block = |i| Block::read(&config, i, &pasts, source, &format!("backbone.blocks.{i}"));
        let blocks: Vec<Block> = (0..config.n_layers).map(block).collect::<Result<_>>()?;
        let end = End::read(&config, source)?;
        let state_shape = StateShape::new(&config, front.state_len(), pasts);
        let first = first_row(&state_shape, |i, memory| blocks[i].init_memory(memory));
        let cost = config.cost();
        let [row_macs, parameters] = [cost.matmul_macs.saturating_add(cost.elementwise_macs), cost.parameters]
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok(Self { config, state_shape, front, blocks, end, first, row_macs, parameters })
    }

    /// What the model is.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Number of trainable parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Multiply-adds that a step takes, without those with the past that attention and long filters see.
    pub fn step_macs(&self) -> usize {
        self.row_macs.saturating_mul(self.places())
    }

    /// What stands at every step that it reads.
    pub fn reads(&self) -> Reads {
        self.front.reads()
    }

    /// Numbers that it gives after a step: logits of V tokens or of classes, values, or an action.
    pub fn outputs(&self) -> usize {
        self.config.outputs()
    }

    /// Whether it is a policy, whose steps are `[return to go | observation | action before | time]` and whose outputs are an action.
    pub fn is_policy(&self) -> bool {
        self.front.is_policy()
    }

    /// Rows of the residual stream that a step has; the first of a policy may have one less.
    fn places(&self) -> usize {
        if self.is_policy() { POLICY_PLACES } else { 1 }
    }

    /// V, the number of tokens it knows; 0 of one that reads values.
    pub fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    pub(crate) fn checked(&self) -> &CheckedConfig {
        &self.config
    }

    pub(crate) fn state_shape(&self) -> &StateShape {
        &self.state_shape
    }

    /// `rows` sessions of which nothing has been read.
    ///
    /// # Errors
    /// When memory cannot hold so many.
    pub fn init_state(&self, rows: usize) -> Result<State> {
        State::new(self.state_shape.clone(), rows, &self.first)
    }

    /// Bytes that a session takes once it has read `steps`: always the same, but for models with attention or long filters, which keep what
    /// they still see.
    pub fn session_bytes(&self, steps: usize) -> u128 {
        let rows = self.front.rows_of(steps) as u128;
        let past = |shape: &PastShape| rows.min(shape.tokens as u128) * shape.width as u128;
        let numbers = self.state_shape.row_len() as u128 + self.state_shape.pasts().iter().map(past).sum::<u128>();
        numbers * size_of::<f32>() as u128
    }

    /// The same of a session as [`Sessions`](crate::Sessions) keep it: with the rows of a table by which the next one is read, where there is a task.
    pub fn session_bytes_of(&self, table: Option<&TableTask>, steps: usize) -> u128 {
        self.session_bytes(steps) + table.map_or(0, TableTask::history_bytes) as u128
    }

    /// After how many steps a session has stopped growing; 0 where it never grows.
    pub fn steps_seen(&self) -> usize {
        let rows = self.state_shape.pasts().iter().map(|shape| shape.tokens).max().unwrap_or(0);
        rows.div_ceil(self.places())
    }

    /// Begins session `row` anew. A model of pairs keeps what it made of the steps until now, to compare the next sequence with it.
    ///
    /// # Errors
    /// When there is no such session, or the state belongs to another model.
    pub fn restart(&self, state: &mut State, row: usize) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if !self.config.pair_head {
            return state.restart(row, &self.first);
        }
        let mut first = self.first.clone();
        let [_, (at, len)] = self.state_shape.ends();
        let before = state.row(row)?[at..at + len].to_vec();
        self.end.begin_anew(self.config.d_model, &before, &mut first[at..]);
        state.restart(row, &first)
    }

    /// Reads one token of every session and writes the logits of the next.
    ///
    /// # Shapes
    /// `tokens` `[B]`, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// When the model reads values, a token is not known, lengths or the state do not fit, or memory cannot hold the past that is seen;
    /// nothing is then read.
    pub fn step(&self, tokens: &[u32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, tokens.len())?;
        self.step_spans(|i| i, self.tokens(tokens)?, state, outputs, workspace)
    }

    /// Reads one step of numbers of every session and writes what is predicted after it.
    ///
    /// # Shapes
    /// `values` `[B, F]`, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// When the model reads tokens, a number is NaN or infinite, lengths or the state do not fit, or memory cannot hold the past that is
    /// seen; nothing is then read.
    pub fn step_values(&self, values: &[f32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        let steps = self.values(values, 0)?;
        self.expect_rows(state, steps.len())?;
        self.step_spans(|i| i, steps, state, outputs, workspace)
    }

    /// Reads one token of each of the sessions `rows`; the others stay as they are.
    ///
    /// # Shapes
    /// `rows`, `tokens` `[R]`, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`step`](Model::step); also when the rows do not ascend or do not exist.
    pub fn step_rows(
        &self,
        rows: &[usize],
        tokens: &[u32],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.step_some(rows, self.tokens(tokens)?, state, outputs, workspace)
    }

    /// Reads one step of numbers of each of the sessions `rows`; the others stay as they are.
    ///
    /// # Shapes
    /// `rows` `[R]`, `values` `[R, F]`, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values); also when the rows do not ascend or do not exist.
    pub fn step_rows_values(
        &self,
        rows: &[usize],
        values: &[f32],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.step_some(rows, self.values(values, 0)?, state, outputs, workspace)
    }

    /// Reads a prompt for every session, all tokens at once, and writes the logits after each prompt's last token. Prompts may have
    /// different lengths.
    ///
    /// # Shapes
    /// `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// As [`step`](Model::step); also when there is not one prompt for each session, or a prompt is empty.
    pub fn prefill<P: AsRef<[u32]>>(&self, prompts: &[P], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, prompts.len())?;
        self.read_and_predict(|i| i, &self.prompts(prompts)?, state, outputs, workspace)
    }

    /// Reads a prompt for each of the sessions `rows`; the others stay as they are.
    ///
    /// # Shapes
    /// `rows`, `prompts` `[R]`, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`prefill`](Model::prefill); also when the rows do not ascend or do not exist.
    pub fn prefill_rows<P: AsRef<[u32]>>(
        &self,
        rows: &[usize],
        prompts: &[P],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_some(rows, prompts.len(), state)?;
        self.read_and_predict(|i| rows[i], &self.prompts(prompts)?, state, outputs, workspace)
    }

    /// Reads a sequence of numbers for every session, all steps at once, and writes what is predicted after each sequence's last step. The
    /// sequences may have different lengths.
    ///
    /// # Shapes
    /// `sequences` of `[T, F]` numbers, `outputs` `[B, outputs]` for the B sessions of `state`
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values); also when there is not one sequence for each session, or a sequence is empty.
    pub fn prefill_values<P: AsRef<[f32]>>(
        &self,
        sequences: &[P],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_rows(state, sequences.len())?;
        self.read_and_predict(|i| i, &self.sequences(sequences)?, state, outputs, workspace)
    }

    /// Reads a sequence of numbers for each of the sessions `rows`; the others stay as they are.
    ///
    /// # Shapes
    /// `rows` `[R]`, `sequences` R of `[T, F]` numbers, `outputs` `[R, outputs]`
    ///
    /// # Errors
    /// As [`prefill_values`](Model::prefill_values); also when the rows do not ascend or do not exist.
    pub fn prefill_rows_values<P: AsRef<[f32]>>(
        &self,
        rows: &[usize],
        sequences: &[P],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_some(rows, sequences.len(), state)?;
        self.read_and_predict(|i| rows[i], &self.sequences(sequences)?, state, outputs, workspace)
    }

    /// Reads as [`prefill`](Model::prefill) does, for the state alone; a prompt may be empty.
    ///
    /// # Errors
    /// As [`prefill`](Model::prefill).
    pub fn advance<P: AsRef<[u32]>>(&self, prompts: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, prompts.len())?;
        self.read_sequences(|i| i, &self.prompts(prompts)?, state, None, workspace)
    }

    /// Reads as [`prefill_rows`](Model::prefill_rows) does, for the state alone; a prompt may be empty.
    ///
    /// # Errors
    /// As [`prefill_rows`](Model::prefill_rows).
    pub fn advance_rows<P: AsRef<[u32]>>(&self, rows: &[usize], prompts: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        self.expect_some(rows, prompts.len(), state)?;
        self.read_sequences(|i| rows[i], &self.prompts(prompts)?, state, None, workspace)
    }

    /// Reads as [`prefill_rows_values`](Model::prefill_rows_values) does, for the state alone; a sequence may be empty.
    ///
    /// # Errors
    /// As [`prefill_rows_values`](Model::prefill_rows_values).
    pub fn advance_rows_values<P: AsRef<[f32]>>(
        &self,
        rows: &[usize],
        sequences: &[P],
        state: &mut State,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_some(rows, sequences.len(), state)?;
        self.read_sequences(|i| rows[i], &self.sequences(sequences)?, state, None, workspace)
    }

    /// Reads as [`prefill_values`](Model::prefill_values) does, for the state alone; a sequence may be empty.
    ///
    /// # Errors
    /// As [`prefill_values`](Model::prefill_values).
    pub fn advance_values<P: AsRef<[f32]>>(&self, sequences: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, sequences.len())?;
        self.read_sequences(|i| i, &self.sequences(sequences)?, state, None, workspace)
    }

    /// Reads tokens of one session and writes the logits after every token, as the loss of a text needs them.
    ///
    /// # Shapes
    /// `tokens` `[T]`, `outputs` `[T, outputs]`; `state` has one session
    ///
    /// # Errors
    /// As [`step`](Model::step).
    pub fn forward(&self, tokens: &[u32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.read_and_predict_all(self.tokens(tokens)?, state, outputs, Inside::default(), workspace)
    }

    /// The same as [`forward`](Model::forward), which also writes what `inside` wants.
    ///
    /// # Errors
    /// As [`forward`](Model::forward); also when there is no such block, or the room does not fit.
    pub fn forward_inside(
        &self,
        tokens: &[u32],
        state: &mut State,
        outputs: &mut [f32],
        inside: Inside<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.read_and_predict_all(self.tokens(tokens)?, state, outputs, inside, workspace)
    }

    /// Reads steps of numbers of one session and writes what is predicted after every step.
    ///
    /// # Shapes
    /// `values` `[T, F]`, `outputs` `[T, outputs]`; `state` has one session
    ///
    /// # Errors
    /// As [`step_values`](Model::step_values).
    pub fn forward_values(&self, values: &[f32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.read_and_predict_all(self.values(values, 0)?, state, outputs, Inside::default(), workspace)
    }

    /// The same as [`forward_values`](Model::forward_values), which also writes what `inside` wants.
    ///
    /// # Errors
    /// As [`forward_values`](Model::forward_values); also when there is no such block, or the room does not fit.
    pub fn forward_values_inside(
        &self,
        values: &[f32],
        state: &mut State,
        outputs: &mut [f32],
        inside: Inside<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.read_and_predict_all(self.values(values, 0)?, state, outputs, inside, workspace)
    }

    fn step_some(&self, rows: &[usize], steps: Steps<'_>, state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_some(rows, steps.len(), state)?;
        self.step_spans(|i| rows[i], steps, state, outputs, workspace)
    }

    /// Checks that `rows` are sessions of `state`, with one of `found` things for each.
    fn expect_some(&self, rows: &[usize], found: usize, state: &State) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if rows.len() != found {
            return input(format!("expected one step for each of {} sessions, found {found}", rows.len()));
        }
        state.expect_rows(rows)
    }

    fn step_spans(
        &self,
        row: impl Fn(usize) -> usize,
        steps: Steps<'_>,
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_room(steps.len(), outputs)?;
        (0..steps.len()).try_for_each(|i| self.reserve(state, row(i), 1))?;
        workspace.begin();
        for i in 0..steps.len() {
            self.add(workspace, state, row(i), steps.part(i, 1));
            workspace.wanted.push((workspace.rows - 1, i));
        }
        self.pass(state, outputs, workspace);
        Ok(())
    }

    fn read_and_predict(
        &self,
        row: impl Fn(usize) -> usize,
        sequences: &[Steps<'_>],
        state: &mut State,
        outputs: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        if let Some(row) = sequences.iter().position(|steps| steps.len() == 0).map(&row) {
            return input(format!("the sequence of session {row} is empty, expected at least one step; begin a prompt with a start token"));
        }
        self.expect_room(sequences.len(), outputs)?;
        self.read_sequences(row, sequences, state, Some(outputs), workspace)
    }

    /// Reads in passes over the sessions that have something left, so that a short prompt costs nothing while a long one is read.
    fn read_sequences(
        &self,
        row: impl Fn(usize) -> usize,
        sequences: &[Steps<'_>],
        state: &mut State,
        mut outputs: Option<&mut [f32]>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        sequences.iter().enumerate().try_for_each(|(i, steps)| self.reserve(state, row(i), steps.len()))?;
        let mut read = 0;
        loop {
            let left = |steps: &Steps<'_>| steps.len().saturating_sub(read);
            let sessions = sequences.iter().filter(|steps| left(steps) > 0).count();
            if sessions == 0 {
                return Ok(());
            }
            let seq_len = (PASS_STEPS / sessions).max(1);
            workspace.begin();
            for (i, steps) in sequences.iter().enumerate().filter(|(_, steps)| left(steps) > 0) {
                let now = left(steps).min(seq_len);
                self.add(workspace, state, row(i), steps.part(read, now));
                if outputs.is_some() && now == left(steps) {
                    workspace.wanted.push((workspace.rows - 1, i));
                }
            }
            self.pass(state, outputs.as_deref_mut().unwrap_or(&mut []), workspace);
            read += seq_len;
        }
    }

    fn read_and_predict_all(
        &self,
        steps: Steps<'_>,
        state: &mut State,
        outputs: &mut [f32],
        mut inside: Inside<'_>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_rows(state, 1)?;
        self.expect_room(steps.len(), outputs)?;
        inside.expect_fit(self.blocks.len(), steps.len(), self.config.d_model)?;
        self.reserve(state, 0, steps.len())?;
        let width = self.outputs();
        let seq_len = (PASS_OUTPUTS / width).clamp(1, PASS_STEPS);
        for (start, outputs) in (0..steps.len()).step_by(seq_len).zip(outputs.chunks_mut(seq_len * width)) {
            let now = seq_len.min(steps.len() - start);
            workspace.begin();
            self.add(workspace, state, 0, steps.part(start, now));
            // The last row of every step, a step of a policy having several but perhaps the first.
            let (each, last) = (self.places(), workspace.rows - 1);
            workspace.wanted.extend((0..now).map(|step| (last - each * (now - 1 - step), step)));
            self.pass_inside::<true>(state, outputs, inside.part(start, now, self.config.d_model), workspace);
        }
        Ok(())
    }

    /// Makes room for what is kept of `steps` more steps of a session.
    fn reserve(&self, state: &mut State, row: usize, steps: usize) -> Result<()> {
        if self.state_shape.pasts().is_empty() {
            return Ok(());
        }
        let each = self.places();
        state.reserve(row, steps.saturating_mul(each), PASS_STEPS * each)
    }

    /// Adds steps of a session to the next pass.
    fn add(&self, workspace: &mut Workspace, state: &State, session: usize, steps: Steps<'_>) {
        let rows = self.front.rows(state.front(session), steps.len());
        workspace.add(session, steps, rows);
    }

    /// Runs the steps of the workspace's spans; then row `to` of `outputs` gets what is predicted after row `from` of the pass, for every
    /// wanted `(from, to)`.
    fn pass(&self, state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) {
        self.pass_inside::<false>(state, outputs, Inside::default(), workspace);
    }

    /// The same; where something `IS_WANTED`, `inside` has room for what is wanted of every row that is.
    fn pass_inside<const IS_WANTED: bool>(
        &self,
        state: &mut State,
        outputs: &mut [f32],
        mut inside: Inside<'_>,
        workspace: &mut Workspace,
    ) {
        let (d, rows) = (self.config.d_model, workspace.rows);
        if rows == 0 {
            return;
        }
        let level = Level::current();
        let (row_len, lists) = (self.state_shape.row_len(), self.state_shape.pasts().len());
        let (values, pasts) = state.parts_mut();
        let sessions = Sessions { values: Shared::new(values, row_len), pasts: Shared::new(pasts, lists) };
        let [front, end] = self.state_shape.ends().map(|(first, len)| Memory::new(sessions, first, len));
        workers::fork_join(rows.saturating_mul(self.row_macs), workspace.most_threads, |workers| {
            let Workspace { x, buffers, scratches, spans, input, wanted, .. } = workspace;
            if scratches.len() < workers.most_pieces() {
                scratches.resize_with(workers.most_pieces(), Scratch::default);
            }
            let pass = Pass { workers, level, spans, rows, scratches: Shared::new(scratches, 0) };
            let x = room(x, rows * d);
            self.front.forward(&pass, front, input, x, buffers);
            let mut first = 0;
            for (layer, (block, len)) in self.blocks.iter().zip(self.state_shape.block_lens()).enumerate() {
                block.forward(&pass, sessions, first, x, buffers);
                first += len;
                if IS_WANTED && let Some((_, room)) = inside.hidden.as_mut().filter(|(wanted, _)| *wanted == layer) {
                    gather(x, wanted, room);
                }
            }
            self.end.forward(&pass, end, self.front.embedding(), x, wanted, outputs, buffers);
            if IS_WANTED && let Some(features) = inside.features {
                features.copy_from_slice(&buffers.hidden[..features.len()]);
            }
        });
    }

    fn expect_rows(&self, state: &State, found: usize) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if found == state.rows() {
            return Ok(());
        }
        input(format!("the state has {} sessions, expected steps for each, found steps for {found}", state.rows()))
    }

    /// `tokens`, all of them known.
    fn tokens<'a>(&self, tokens: &'a [u32]) -> Result<Steps<'a>> {
        let Reads::Tokens { vocab } = self.reads() else { return Err(Error::Reads { expected: self.reads(), found: "tokens" }) };
        match tokens.iter().find(|&&token| token as usize >= vocab) {
            None => Ok(Steps::Tokens(tokens)),
            Some(&token) => Err(Error::UnknownToken { token, vocab_size: vocab }),
        }
    }

    /// `values`, all of them finite, as whole steps of session `session` or, of one step each, of that and those that follow.
    fn values<'a>(&self, values: &'a [f32], session: usize) -> Result<Steps<'a>> {
        let Reads::Values { width } = self.reads() else { return Err(Error::Reads { expected: self.reads(), found: "numbers" }) };
        if !values.len().is_multiple_of(width) {
            return input(format!("expected steps of {width} numbers, found {} numbers", values.len()));
        }
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(Steps::Values { values, width }),
            Some(at) => Err(Error::NotFinite { sequence: session, step: at / width, column: at % width, value: values[at] }),
        }
    }

    /// Each is asked for its tokens once, so that what is checked is what is read.
    fn prompts<'a, P: AsRef<[u32]>>(&self, prompts: &'a [P]) -> Result<Vec<Steps<'a>>> {
        prompts.iter().map(|prompt| self.tokens(prompt.as_ref())).collect()
    }

    fn sequences<'a, P: AsRef<[f32]>>(&self, sequences: &'a [P]) -> Result<Vec<Steps<'a>>> {
        sequences.iter().enumerate().map(|(session, values)| self.values(values.as_ref(), session)).collect()
    }

    fn expect_room(&self, rows: usize, outputs: &[f32]) -> Result<()> {
        if rows.checked_mul(self.outputs()) == Some(outputs.len()) {
            return Ok(());
        }
        input(format!("expected room for {rows} rows of {} outputs, found {}", self.outputs(), outputs.len()))
    }
}

fn input<T>(sentence: String) -> Result<T> {
    Err(Error::Input(sentence))
}
