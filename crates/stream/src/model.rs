//! Tokens in, logits out: embedding, blocks, final norm, head.

use alloc::vec::Vec;
use alloc::{format, string::String};

use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::{Scratch, WeightMatrix};

use crate::block::Block;
use crate::linear::{Shared, matmul};
use crate::mixer::check_supported;
use crate::norm::Norm;
use crate::pass::Pass;
use crate::source::{Counted, Source};
use crate::state::{State, StateShape, first_row};
use crate::workers;
use crate::workspace::{Workspace, room};
use crate::{CheckedConfig, Error, ModelConfig, Result};

/// Tokens of one pass over prompts: longer ones take several, so that memory does not grow with their length.
const PASS_TOKENS: usize = 512;
/// Most logits of one pass that wants them after every token.
const PASS_LOGITS: usize = 1 << 22;

/// A trained model, ready to run. Sessions share it; what they remember is in a [`State`], and a [`Workspace`] lends the memory of a
/// call.
///
/// ```no_run
/// use minrnn_stream::{Model, Sampler, Sampling, Workspace};
///
/// let model = Model::load("model.minrnn")?;
/// let (mut state, mut workspace) = (model.init_state(1)?, Workspace::new());
/// let mut logits = vec![0.0; model.vocab_size()];
/// let mut sampler = Sampler::new(Sampling::default())?;
/// model.prefill(&[[1, 2, 3]], &mut state, &mut logits, &mut workspace)?;
/// for _ in 0..10 {
///     let token = sampler.sample(&mut logits, &[])?;
///     model.step(&[token], &mut state, &mut logits, &mut workspace)?;
/// }
/// # Ok::<(), minrnn_stream::Error>(())
/// ```
#[derive(Debug)]
pub struct Model {
    config: CheckedConfig,
    state_shape: StateShape,
    /// `[V, D]`.
    embedding: WeightMatrix,
    blocks: Vec<Block>,
    final_norm: Norm,
    /// `[V, D]`; absent when it is the embedding's matrix.
    head: Option<WeightMatrix>,
    /// What a session remembers before its first token.
    first: Vec<f32>,
    /// Multiplications for one token.
    cost: usize,
    parameters: usize,
}

impl Model {
    /// The model of a checkpoint: `weights` are taken out, and their matrices stored in `format` (embedding and head as bf16 at least).
    ///
    /// # Errors
    /// When the configuration is not valid or has a mixer that the runtime does not run, or the weights are not those of such a model.
    #[cfg(feature = "std")]
    pub fn new(config: &ModelConfig, weights: &mut minrnn_model::Weights, format: minrnn_model::WeightFormat) -> Result<Self> {
        let model = Self::read(config, &mut crate::source::Checkpoint { weights, format })?;
        weights.expect_empty()?;
        Ok(model)
    }

    /// The model at `path`: a checkpoint directory, whose matrices stay f32, or a packed file.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is not a model.
    #[cfg(feature = "std")]
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let (config, mut weights) = minrnn_model::read_checkpoint(path)?;
            return Self::new(&config.model, &mut weights, minrnn_model::WeightFormat::F32);
        }
        Ok(crate::PackedModel::read(path)?.model)
    }

    pub(crate) fn read(config: &ModelConfig, source: &mut dyn Source) -> Result<Self> {
        let config = config.checked()?;
        check_supported(&config)?;
        let source = &mut Counted::new(source);
        let (v, d) = (config.vocab_size, config.d_model);
        let embedding = source.matrix("embedding.weight", v, d)?;
        let blocks: Vec<Block> =
            (0..config.n_layers).map(|i| Block::read(&config, i, source, &format!("backbone.blocks.{i}"))).collect::<Result<_>>()?;
        let final_norm = Norm::read(&config, source, "backbone.final_norm")?;
        let head = if config.tie_embeddings { None } else { Some(source.matrix("head.weight", v, d)?) };
        let state_shape = StateShape::new(&config);
        let first = first_row(&state_shape, |i, memory| blocks[i].init_memory(memory));
        let cost = usize::try_from(config.cost().parameters).unwrap_or(usize::MAX);
        Ok(Self { config, state_shape, embedding, blocks, final_norm, head, first, cost, parameters: source.parameters })
    }

    /// What the model is.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Number of trainable parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// V, the number of tokens it knows.
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

    /// Reads one token of every session and writes the logits of the next.
    ///
    /// # Shapes
    /// `tokens` `[B]`, `logits` `[B, V]` for the B sessions of `state`
    ///
    /// # Errors
    /// When a token is not known, or lengths or the state do not fit; nothing is then read.
    pub fn step(&self, tokens: &[u32], state: &mut State, logits: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, tokens.len())?;
        self.step_spans(|i| i, tokens, state, logits, workspace)
    }

    /// Reads one token of each of the sessions `rows`; the others stay as they are.
    ///
    /// # Shapes
    /// `rows`, `tokens` `[R]`, `logits` `[R, V]`
    ///
    /// # Errors
    /// As [`step`](Model::step); also when the rows do not ascend or do not exist.
    pub fn step_rows(
        &self,
        rows: &[usize],
        tokens: &[u32],
        state: &mut State,
        logits: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if rows.len() != tokens.len() {
            return input(format!("expected one token for each of {} sessions, found {}", rows.len(), tokens.len()));
        }
        if rows.windows(2).any(|pair| pair[0] >= pair[1]) || rows.last().is_some_and(|&row| row >= state.rows()) {
            return input(format!("expected ascending sessions below {}, found {rows:?}", state.rows()));
        }
        self.step_spans(|i| rows[i], tokens, state, logits, workspace)
    }

    /// Reads a prompt for every session, all tokens at once, and writes the logits after each prompt's last token. Prompts may have
    /// different lengths.
    ///
    /// # Shapes
    /// `logits` `[B, V]` for the B sessions of `state`
    ///
    /// # Errors
    /// When there is not one prompt for each session, a prompt is empty, a token is not known, or lengths or the state do not fit;
    /// nothing is then read.
    pub fn prefill<P: AsRef<[u32]>>(&self, prompts: &[P], state: &mut State, logits: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        // Each is asked for its tokens once, here and below, so that what is checked is what is read.
        let prompts: Vec<&[u32]> = prompts.iter().map(AsRef::as_ref).collect();
        if let Some(row) = prompts.iter().position(|prompt| prompt.is_empty()) {
            return input(format!("the prompt of session {row} is empty, expected at least one token; begin it with a start token"));
        }
        self.expect_logits(prompts.len(), logits)?;
        self.read_prompts(&prompts, state, Some(logits), workspace)
    }

    /// Reads as [`prefill`](Model::prefill) does, for the state alone; a prompt may be empty.
    ///
    /// # Errors
    /// As [`prefill`](Model::prefill).
    pub fn advance<P: AsRef<[u32]>>(&self, prompts: &[P], state: &mut State, workspace: &mut Workspace) -> Result<()> {
        let prompts: Vec<&[u32]> = prompts.iter().map(AsRef::as_ref).collect();
        self.read_prompts(&prompts, state, None, workspace)
    }

    /// Reads tokens of one session and writes the logits after every token, as the loss of a text needs them.
    ///
    /// # Shapes
    /// `tokens` `[T]`, `logits` `[T, V]`; `state` has one session
    ///
    /// # Errors
    /// As [`step`](Model::step).
    pub fn forward(&self, tokens: &[u32], state: &mut State, logits: &mut [f32], workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, 1)?;
        self.expect_known(tokens)?;
        self.expect_logits(tokens.len(), logits)?;
        let v = self.vocab_size();
        let seq_len = (PASS_LOGITS / v).clamp(1, PASS_TOKENS);
        for (tokens, logits) in tokens.chunks(seq_len).zip(logits.chunks_mut(seq_len * v)) {
            workspace.begin();
            workspace.add(0, tokens);
            workspace.wanted.extend((0..tokens.len()).map(|row| (row, row)));
            self.pass(state, logits, workspace);
        }
        Ok(())
    }

    fn step_spans(
        &self,
        row: impl Fn(usize) -> usize,
        tokens: &[u32],
        state: &mut State,
        logits: &mut [f32],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.expect_known(tokens)?;
        self.expect_logits(tokens.len(), logits)?;
        workspace.begin();
        for i in 0..tokens.len() {
            workspace.add(row(i), &tokens[i..=i]);
            workspace.wanted.push((i, i));
        }
        self.pass(state, logits, workspace);
        Ok(())
    }

    /// Reads in passes over the sessions that have something left, so that a short prompt costs nothing while a long one is read.
    fn read_prompts(&self, prompts: &[&[u32]], state: &mut State, mut logits: Option<&mut [f32]>, workspace: &mut Workspace) -> Result<()> {
        self.expect_rows(state, prompts.len())?;
        prompts.iter().try_for_each(|prompt| self.expect_known(prompt))?;
        let mut read = 0;
        loop {
            let left = |prompt: &[u32]| prompt.len().saturating_sub(read);
            let sessions = prompts.iter().filter(|prompt| left(prompt) > 0).count();
            if sessions == 0 {
                return Ok(());
            }
            let seq_len = (PASS_TOKENS / sessions).max(1);
            workspace.begin();
            for (session, prompt) in prompts.iter().enumerate().filter(|(_, prompt)| left(prompt) > 0) {
                let now = &prompt[read..][..left(prompt).min(seq_len)];
                let row = workspace.add(session, now);
                if logits.is_some() && now.len() == left(prompt) {
                    workspace.wanted.push((row, session));
                }
            }
            self.pass(state, logits.as_deref_mut().unwrap_or(&mut []), workspace);
            read += seq_len;
        }
    }

    /// Runs the tokens of the workspace's spans; then row `to` of `logits` gets those after row `from` of the pass, for every wanted
    /// `(from, to)`.
    fn pass(&self, state: &mut State, logits: &mut [f32], workspace: &mut Workspace) {
        let (d, v, rows) = (self.config.d_model, self.vocab_size(), workspace.tokens.len());
        if rows == 0 {
            return;
        }
        let level = Level::current();
        let state = Shared::new(state.values_mut(), self.state_shape.row_len());
        workers::fork_join(rows.saturating_mul(self.cost), |workers| {
            let Workspace { x, buffers, scratches, spans, tokens, wanted } = workspace;
            if scratches.len() < workers.most_pieces() {
                scratches.resize_with(workers.most_pieces(), Scratch::default);
            }
            let pass = Pass { workers, level, spans, rows, scratches: Shared::new(scratches, 0) };
            let x = room(x, rows * d);
            for (&token, x) in tokens.iter().zip(x.chunks_exact_mut(d)) {
                self.embedding.row(token as usize, x);
            }
            let mut first = 0;
            for (block, len) in self.blocks.iter().zip(self.state_shape.block_lens()) {
                block.forward(&pass, state, first, x, buffers);
                first += len;
            }
            let n = wanted.len();
            if n == 0 {
                return;
            }
            let last = room(&mut buffers.hidden, n * d);
            for (&(from, _), last) in wanted.iter().zip(last.chunks_exact_mut(d)) {
                last.copy_from_slice(&x[from * d..][..d]);
            }
            let normed = room(&mut buffers.normed, n * d);
            self.final_norm.forward(&pass, n, last, normed);
            let logits = Shared::new(logits, v);
            let head = self.head.as_ref().unwrap_or(&self.embedding);
            matmul(&pass, head, 1, 0..1, n, normed, room(&mut buffers.product, n * v), |range, values| {
                for (&(_, to), values) in wanted.iter().zip(values.chunks_exact(range.len())) {
                    // SAFETY: pieces have outputs of their own, and no row is wanted twice.
                    unsafe { logits.part(to, range.clone()) }.copy_from_slice(values);
                }
            });
        });
    }

    fn expect_rows(&self, state: &State, found: usize) -> Result<()> {
        state.expect_shape(&self.state_shape)?;
        if found == state.rows() {
            return Ok(());
        }
        input(format!("the state has {} sessions, expected tokens for each, found tokens for {found}", state.rows()))
    }

    fn expect_known(&self, tokens: &[u32]) -> Result<()> {
        let vocab_size = self.vocab_size();
        match tokens.iter().find(|&&token| token as usize >= vocab_size) {
            None => Ok(()),
            Some(&token) => Err(Error::UnknownToken { token, vocab_size }),
        }
    }

    fn expect_logits(&self, rows: usize, logits: &[f32]) -> Result<()> {
        if rows.checked_mul(self.vocab_size()) == Some(logits.len()) {
            return Ok(());
        }
        input(format!("expected room for the logits of {rows} rows of {} tokens, found {}", self.vocab_size(), logits.len()))
    }
}

fn input<T>(sentence: String) -> Result<T> {
    Err(Error::Input(sentence))
}
