//! A model: first layers, blocks, last layers, and running them. `reading.rs` has the functions that read steps, `checks.rs` the checks
//! before, and `passes.rs` a pass over the layers.

mod checks;
mod passes;
mod reading;

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use minrnn_model::{POLICY_PLACES, POLICY_TENSOR, TableTask};

use crate::block::Block;
use crate::end::End;
use crate::front::Front;
use crate::past::PastShape;
use crate::reads::Reads;
use crate::source::Source;
use crate::state::{State, StateShape, first_row};
use crate::{CheckedConfig, ModelConfig, Result};

/// Steps in one pass over a prompt: longer prompts take several passes, so that memory does not grow with their length. A caller that reads
/// a prompt in pieces should cut it at multiples of this.
pub const PASS_STEPS: usize = 512;

/// A trained model, ready to run. Sessions share it: each keeps its memory in a [`State`], and a [`Workspace`](crate::Workspace) holds the
/// scratch memory of a call.
///
/// It [`reads`](Model::reads) tokens or numbers. After a step it gives [`outputs`](Model::outputs) numbers: logits of the next token or of
/// classes, future values, or the action of a policy.
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
/// A model trained on a table, such as one that classifies the state of a machine from two numbers at each step. The file also describes
/// the columns and the meaning of the outputs ([`PackedModel::table`](crate::PackedModel::table)), with which
/// [`TableSessions`](crate::TableSessions) read rows in the units of the table:
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
    /// The model of a checkpoint. Its tensors are taken out of `weights`, and matrices stored in `format` (embedding and head in at least
    /// int8).
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

    /// The model's configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Number of trainable parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Multiply-adds in a step, except those with the past seen by attention and long filters.
    pub fn step_macs(&self) -> usize {
        self.row_macs.saturating_mul(self.places())
    }

    /// What the model reads at every step.
    pub fn reads(&self) -> Reads {
        self.front.reads()
    }

    /// Number of outputs after a step: logits of V tokens or of classes, values, or an action.
    pub fn outputs(&self) -> usize {
        self.config.outputs()
    }

    /// Whether it is a policy, with steps `[return to go | observation | previous action | time]` and an action as output.
    pub fn is_policy(&self) -> bool {
        self.front.is_policy()
    }

    /// Rows of the residual stream per step; a policy's first step may have one fewer.
    fn places(&self) -> usize {
        if self.is_policy() { POLICY_PLACES } else { 1 }
    }

    /// V, the number of tokens it knows; 0 for a model that reads values.
    pub fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    pub(crate) fn checked(&self) -> &CheckedConfig {
        &self.config
    }

    pub(crate) fn state_shape(&self) -> &StateShape {
        &self.state_shape
    }

    /// `rows` new sessions.
    ///
    /// # Errors
    /// When memory cannot hold so many.
    pub fn init_state(&self, rows: usize) -> Result<State> {
        State::new(self.state_shape.clone(), rows, &self.first)
    }

    /// Bytes of a session once it has read `steps` steps: constant, except for models with attention or long filters, which keep the part
    /// of the past they still see, with up to a quarter of extra room.
    pub fn session_bytes(&self, steps: usize) -> u128 {
        let rows = self.front.rows_of(steps) as u128;
        let past = |shape: &PastShape| rows.min(shape.tokens as u128) * shape.width as u128;
        let numbers = self.state_shape.row_len() as u128 + self.state_shape.pasts().iter().map(past).sum::<u128>();
        numbers * size_of::<f32>() as u128
    }

    /// The same for a session in [`Sessions`](crate::Sessions), which with a table task also keeps the rows needed to read the next one.
    pub fn session_bytes_of(&self, table: Option<&TableTask>, steps: usize) -> u128 {
        self.session_bytes(steps) + table.map_or(0, TableTask::session_bytes) as u128
    }

    /// The number of steps after which a session stops growing; 0 if it never grows.
    pub fn steps_seen(&self) -> usize {
        let rows = self.state_shape.pasts().iter().map(|shape| shape.tokens).max().unwrap_or(0);
        rows.div_ceil(self.places())
    }

    /// Resets session `row`. A model of pairs keeps its summary of the steps until now, to compare the next sequence with it.
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
}
