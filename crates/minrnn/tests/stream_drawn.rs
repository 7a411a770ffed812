//! Randomly drawn models: the runtime against the training model, and against itself with other threads, other batches and prompts cut
//! elsewhere.
//!
//! Widths, ranks, heads, states, parts of a block and formats of weights are drawn so that matmuls are split over threads at every kind of
//! boundary between their outputs. A case is a function of its number, which is named by a failure.

mod common;

use burn::tensor::Device;
use common::{bits, configs, distance};
use minrnn::checkpoint::{load_weights, save_weights};
use minrnn::generate::Session;
use minrnn::model::SequenceModel;
use minrnn::rng::{ChaCha8Rng, Purpose, stream};
use minrnn_kernels::weight_matrix::WeightMatrix;
use minrnn_model::{
    Candidate, FeedForwardKind, ForgetFloor, ForgetGate, GruForm, InitialState, MixerKind, ModelConfig, NormKind, WeightFormat, Weights,
    WiringKind, write_safetensors,
};
use minrnn_stream::{Model, PackedModel, Workspace};
use rand::Rng;

/// Number of cases of the test that always runs.
const CASES: u64 = 3 * MixerKind::ALL.len() as u64 * 6;
/// Number of cases of the long test.
const MANY_CASES: u64 = 3000;

/// Largest |error| of the logits / max(1, largest logit), between the runtime and the training model with the dequantised stored weights.
/// Integer matmuls round their inputs to 16 bits; bf16 matmuls to bf16 if the CPU multiplies it. The delta rule divides keys by their
/// lengths, which magnifies the rounding of short ones. At least twice the largest error of 3342 cases.
fn tolerance(format: WeightFormat, mixer: MixerKind) -> f32 {
    match format {
        WeightFormat::F32 => 2e-5,
        WeightFormat::Bf16 if mixer == MixerKind::Delta => 3e-1,
        WeightFormat::Bf16 => 6e-2,
        WeightFormat::Int8 => 4e-3,
        WeightFormat::Int4 => 3e-2,
    }
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn new(case: u64) -> Self {
        Self(stream(11, Purpose::Bench, case))
    }

    /// A number in `from..=to`.
    fn number(&mut self, from: usize, to: usize) -> usize {
        from + self.0.next_u32() as usize % (to - from + 1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.number(1, n) == 1
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.number(0, choices.len() - 1)].clone()
    }

    /// A divisor of `n` that is at most `limit`.
    fn divisor(&mut self, n: usize, limit: usize) -> usize {
        let divisors: Vec<usize> = (1..=n.min(limit)).filter(|i| n.is_multiple_of(*i)).collect();
        self.of(&divisors)
    }

    /// A value in [−1, 1).
    fn unit(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    fn tokens(&mut self, len: usize, vocab_size: usize) -> Vec<u32> {
        (0..len).map(|_| self.number(0, vocab_size - 1) as u32).collect()
    }

    /// The model of case number `case`: every mixer in turn, in every wiring that it can stand in.
    fn config(&mut self, case: u64) -> ModelConfig {
        let mixers: Vec<_> = MixerKind::ALL.to_vec();
        let mixer = mixers[(case % mixers.len() as u64) as usize];
        let wiring = WiringKind::ALL[(case / mixers.len() as u64 % 3) as usize];
        // Most are wide enough to be split over threads, some as wide as models in use, some as narrow as possible.
        let d_model = match self.number(0, 9) {
            0 => self.number(1, 16),
            1 => 16 * self.number(24, 50),
            _ => self.number(40, 220),
        };
        // RetNet rotates pairs of channels.
        let d_model = if mixer == MixerKind::RetNet { d_model.next_multiple_of(2) } else { d_model };
        let widths = [d_model, d_model, 2 * d_model, d_model + d_model / 2, 3 * d_model];
        let d_inner = if d_model > 220 { d_model } else { self.of(&widths) };
        let mut config = ModelConfig {
            mixer,
            d_model,
            vocab_size: self.number(2, 300),
            expansion: d_inner as f64 / d_model as f64,
            n_layers: if d_model < 100 { self.number(1, 2) } else { 1 },
            ff: FeedForwardKind::None,
            d_state: 2 * self.number(1, 24),
            dt_rank: if self.one_in(2) { 0 } else { self.number(1, 100) },
            n_heads: 1,
            ..Default::default()
        };
        // Settings that this mixer cannot have are left unchanged.
        let mut set = |change: &mut dyn FnMut(&mut ModelConfig)| {
            let mut changed = config.clone();
            change(&mut changed);
            if changed.validate().is_ok() {
                config = changed;
            }
        };
        set(&mut |c| c.wiring = wiring);
        // Head counts that divide the widths of this mixer.
        for _ in 0..4 {
            let heads = self.divisor(d_model * 12, 24);
            set(&mut |c| c.n_heads = heads);
        }
        let head_width = self.divisor(d_model, 8);
        set(&mut |c| c.head_width = head_width);
        if self.one_in(4) {
            let odd = 2 * self.number(0, 30) + 1;
            set(&mut |c| c.d_state = odd);
        }
        let (ff, ff_mult) = (self.of(FeedForwardKind::ALL), self.number(1, 3) as f64);
        set(&mut |c| (c.ff, c.ff_mult) = (ff, ff_mult));
        let norm = self.of(NormKind::ALL);
        set(&mut |c| c.norm = norm);
        let [conv, tied, learned, highway, floor, flag] = [3, 3, 2, 3, 3, 2].map(|n| self.one_in(n));
        set(&mut |c| c.conv = conv);
        set(&mut |c| c.tie_embeddings = tied);
        set(&mut |c| c.initial_state = if learned { InitialState::Learned } else { InitialState::Zero });
        set(&mut |c| c.highway = highway);
        set(&mut |c| c.forget_floor = if floor { ForgetFloor::Learned } else { ForgetFloor::None });
        let (candidate, form, gate) = (self.of(Candidate::ALL), self.of(GruForm::ALL), self.of(ForgetGate::ALL));
        set(&mut |c| (c.candidate, c.gru_form, c.slstm_forget_gate) = (candidate, form, gate));
        set(&mut |c| (c.normalize_gates, c.slstm_conv, c.bias) = (flag, flag, flag));
        config
    }
}

/// A drawn model with its weights in a file, none of them at its initial value.
struct Case {
    config: ModelConfig,
    format: WeightFormat,
    fresh: SequenceModel,
    weights: tempfile::NamedTempFile,
}

impl Case {
    fn new(number: u64, draw: &mut Draw) -> Self {
        let (config, weights) = (draw.config(number), tempfile::NamedTempFile::new().unwrap());
        let fresh = SequenceModel::new(&config, number, &Device::flex()).unwrap();
        save_weights(&fresh, weights.path()).unwrap();
        rewrite(weights.path(), |_, shape, values| {
            // Noise that preserves the size of sums over many inputs.
            let size = 0.2 * (32.0 / *shape.last().unwrap_or(&1) as f32).sqrt().min(1.0);
            values.iter_mut().for_each(|value| *value += size * draw.unit());
        });
        Self { config, format: draw.of(WeightFormat::ALL), fresh, weights }
    }

    fn read(&self) -> Weights {
        Weights::read(self.weights.path()).unwrap()
    }

    /// The runtime's model, and the training model with the dequantised stored weights.
    fn models(&self) -> (Model, SequenceModel) {
        let packed = tempfile::NamedTempFile::new().unwrap();
        let entries = PackedModel::write(packed.path(), &self.config, &mut self.read(), self.format, &[]).unwrap();
        let stored = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(self.weights.path(), stored.path()).unwrap();
        rewrite(stored.path(), |name, shape, values| {
            let format = entries.iter().find(|entry| entry.name == name).unwrap().format;
            if let (&[outputs, inputs], true) = (shape, format != WeightFormat::F32) {
                let matrix = WeightMatrix::new(format, outputs, inputs, values);
                values.chunks_exact_mut(inputs).enumerate().for_each(|(i, row)| matrix.row(i, row));
            }
        });
        let trained = load_weights(self.fresh.clone(), &mut Weights::read(stored.path()).unwrap()).unwrap();
        (PackedModel::read(packed.path()).unwrap().model, trained)
    }
}

/// Changes the tensors of a file; `change(name, shape, values)`.
fn rewrite(path: &std::path::Path, mut change: impl FnMut(&str, &[usize], &mut [f32])) {
    let mut weights = Weights::read(path).unwrap();
    let names: Vec<String> = weights.names().map(ToString::to_string).collect();
    let changed = names.into_iter().map(|name| {
        let mut tensor = weights.take_any(&name).unwrap();
        let shape = tensor.shape().to_vec();
        change(&name, &shape, tensor.data_mut());
        (name, shape, tensor.into_data().into())
    });
    let changed: Vec<_> = changed.collect();
    write_safetensors(path, changed, None).unwrap();
}

/// What is read: a prompt for each session, then a token of each at every step.
struct Text {
    prompts: Vec<Vec<u32>>,
    steps: Vec<Vec<u32>>,
}

impl Text {
    fn new(draw: &mut Draw, vocab_size: usize) -> Self {
        let sessions = draw.number(1, 4);
        let prompts = (0..sessions).map(|_| {
            let len = draw.number(1, 40);
            draw.tokens(len, vocab_size)
        });
        let prompts = prompts.collect();
        Self { prompts, steps: (0..3).map(|_| draw.tokens(sessions, vocab_size)).collect() }
    }

    /// Logits of all sessions together after the prompts and after every step, on `threads` threads.
    fn together(&self, model: &Model, threads: usize) -> Vec<Vec<f32>> {
        on(threads, || {
            let mut workspace = Workspace::new();
            let mut state = model.init_state(self.prompts.len()).unwrap();
            let mut logits = vec![f32::NAN; self.prompts.len() * model.vocab_size()];
            model.prefill(&self.prompts, &mut state, &mut logits, &mut workspace).unwrap();
            let mut all = vec![logits.clone()];
            for tokens in &self.steps {
                model.step(tokens, &mut state, &mut logits, &mut workspace).unwrap();
                all.push(logits.clone());
            }
            all
        })
    }

    /// The same for `session` alone, whose prompt is cut at `cut`.
    fn alone(&self, model: &Model, threads: usize, session: usize, cut: usize) -> Vec<Vec<f32>> {
        on(threads, || {
            let (mut workspace, mut logits) = (Workspace::new(), vec![f32::NAN; model.vocab_size()]);
            let mut state = model.init_state(1).unwrap();
            let (before, after) = self.prompts[session].split_at(cut);
            model.advance(&[before], &mut state, &mut workspace).unwrap();
            model.prefill(&[after], &mut state, &mut logits, &mut workspace).unwrap();
            let mut all = vec![logits.clone()];
            for tokens in &self.steps {
                model.step(&tokens[session..=session], &mut state, &mut logits, &mut workspace).unwrap();
                all.push(logits.clone());
            }
            all
        })
    }

    fn by_training_model(&self, model: &SequenceModel) -> Vec<Vec<f32>> {
        let mut session = Session::new(model, self.prompts.len());
        let first = session.prefill(&self.prompts).unwrap();
        let rows = |logits: &minrnn::generate::Logits| (0..self.prompts.len()).flat_map(|row| logits.row(row).to_vec()).collect();
        let mut all = vec![rows(&first)];
        for tokens in &self.steps {
            all.push(rows(&session.step(tokens).unwrap()));
        }
        all
    }
}

/// Runs `work` on its own pool, made once for each number of threads.
fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    use std::sync::OnceLock;
    static POOLS: [OnceLock<rayon::ThreadPool>; 5] = [const { OnceLock::new() }; 5];
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    POOLS[threads - 1].get_or_init(pool).install(work)
}

fn check(numbers: std::ops::Range<u64>) {
    let mut failed = Vec::new();
    for number in numbers {
        let draw = &mut Draw::new(number);
        let case = Case::new(number, draw);
        let what = format!("case {number}, {}, {}", case.format, configs::label(&case.config));
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(&case, draw, &what))).is_err() {
            failed.push(what);
        }
    }
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}

/// The bits of the logits after every step.
fn all_bits(logits: &[Vec<f32>]) -> Vec<Vec<u32>> {
    logits.iter().map(|logits| bits(logits)).collect()
}

fn compare(case: &Case, draw: &mut Draw, what: &str) {
    let (model, trained) = case.models();
    let v = case.config.vocab_size;
    let text = Text::new(draw, v);
    let together = text.together(&model, 1);
    let threads = draw.number(2, 5);
    assert!(all_bits(&text.together(&model, threads)) == all_bits(&together), "{threads} threads change a bit: {what}");
    let session = draw.number(0, text.prompts.len() - 1);
    let (threads, cut) = (draw.number(1, 5), draw.number(0, text.prompts[session].len() - 1));
    let alone: Vec<Vec<f32>> = together.iter().map(|logits| logits[session * v..][..v].to_vec()).collect();
    let found = text.alone(&model, threads, session, cut);
    assert!(
        all_bits(&found) == all_bits(&alone),
        "session {session} alone on {threads} threads, its prompt cut at {cut}, has other bits: {what}"
    );
    let by_training_model = text.by_training_model(&trained);
    assert_eq!(together.len(), by_training_model.len(), "{what}");
    for (i, (found, expected)) in together.iter().zip(&by_training_model).enumerate() {
        let error = distance(found, expected);
        assert!(error <= tolerance(case.format, case.config.mixer), "logits {i} are off by {error:.1e}: {what}");
    }
}

#[test]
fn drawn_models_give_the_logits_of_training_whatever_the_threads_the_batch_and_the_cut() {
    check(0..CASES);
}

/// `cargo test --release --workspace --test stream_drawn -- --ignored`
#[test]
#[ignore = "takes many minutes"]
fn many_drawn_models_give_the_logits_of_training() {
    check(CASES..CASES + MANY_CASES);
}
