//! The runtime against the training model: the same logits from the same weights, for prompts and for steps.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{VOCAB_SIZE, bits, configs, distance, perturbed, random, random_below, values};
use minrnn::Segments;
use minrnn::checkpoint::save_weights;
use minrnn::data::offline_rl::StepEncoding;
use minrnn::data::table::{Series, read_series};
use minrnn::deployed::{evaluate, predict, score};
use minrnn::generate::{Logits, RuntimeSession, Session, TokenSession};
use minrnn::model::{Decision, Inputs, SequenceModel};
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn::rng::Purpose;
use minrnn::train::Data;
use minrnn_model::{Classifier, MixerKind, ModelConfig, Normalization, Prediction, Section, TableTask, WeightFormat, Weights, WiringKind};
use minrnn_stream::{Model, PackedModel, Reads, State, Workspace};

/// |error| ≤ this · max(1, largest logit).
const TOLERANCE: f32 = 1e-5;

/// The runtime's model with the weights of `trained`.
fn deployed<M: Module>(trained: &M, config: &ModelConfig) -> Model {
    let file = tempfile::NamedTempFile::new().unwrap();
    save_weights(trained, file.path()).unwrap();
    Model::new(config, &mut Weights::read(file.path()).unwrap(), WeightFormat::F32).unwrap()
}

/// A model for training and the same for the runtime, with no parameter or running statistic at its initial value.
fn both(config: &ModelConfig) -> (SequenceModel, Model) {
    let trained = perturbed(SequenceModel::new(config, 7, &Device::flex()).unwrap());
    let model = deployed(&trained, config);
    (trained, model)
}

fn compare(config: &ModelConfig) {
    let (trained, model) = both(config);
    let what = configs::label(config);
    let prompts: Vec<Vec<u32>> = [30, 1, 7]
        .iter()
        .map(|&len| random_below(VOCAB_SIZE, len, 40 + len as u64).into_iter().map(|token| token as u32).collect())
        .collect();
    let mut session = Session::new(&trained, prompts.len());
    let (mut state, mut workspace) = (model.init_state(prompts.len()).unwrap(), Workspace::new());
    let v = config.vocab_size;
    let mut logits = vec![f32::NAN; prompts.len() * v];
    let expected = session.prefill(&prompts).unwrap();
    model.prefill(&prompts, &mut state, &mut logits, &mut workspace).unwrap();
    let is_close = |logits: &[f32], expected: &Logits, row: usize| distance(&logits[row * v..][..v], expected.row(row)) <= TOLERANCE;
    (0..prompts.len()).for_each(|row| assert!(is_close(&logits, &expected, row), "prefill, {what}"));
    for step in 0..10 {
        let tokens = [step, step + 1, 10 - step];
        let expected = session.step(&tokens).unwrap();
        model.step(&tokens, &mut state, &mut logits, &mut workspace).unwrap();
        (0..prompts.len()).for_each(|row| assert!(is_close(&logits, &expected, row), "step {step}, {what}"));
    }
}

/// What a model reads in a test.
enum Sequence {
    Tokens(Vec<u32>),
    Values { values: Vec<f32>, width: usize },
}

impl Sequence {
    fn new(reads: Reads, len: usize, index: u64) -> Self {
        match reads {
            Reads::Tokens { vocab } => Self::Tokens(random_below(vocab, len, index).into_iter().map(|token| token as u32).collect()),
            Reads::Values { width } => Self::Values { values: random(len * width, index).iter().map(|x| 2.0 * x).collect(), width },
        }
    }

    fn as_inputs(&self) -> Inputs {
        let device = Device::flex();
        match self {
            Self::Tokens(tokens) => {
                let ids = tokens.iter().map(|&token| i64::from(token)).collect();
                Tensor::<2, Int>::from_data(TensorData::new(ids, [1, tokens.len()]), &device).into()
            }
            Self::Values { values, width } => {
                Tensor::<3>::from_data(TensorData::new(values.clone(), [1, values.len() / width, *width]), &device).into()
            }
        }
    }

    /// Reads `steps` and writes the prediction after each.
    fn forward(&self, model: &Model, steps: std::ops::Range<usize>, state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) {
        match self {
            Self::Tokens(tokens) => model.forward(&tokens[steps], state, outputs, workspace).unwrap(),
            Self::Values { values, width } => {
                model.forward_values(&values[steps.start * width..steps.end * width], state, outputs, workspace).unwrap();
            }
        }
    }
}

/// The predictions after every step of a sequence that is read in pieces cut at `cuts` and reset before `reset`.
fn in_pieces(model: &Model, sequence: &Sequence, len: usize, reset: usize, cuts: &[usize]) -> Vec<f32> {
    let (mut state, mut workspace, width) = (model.init_state(1).unwrap(), Workspace::new(), model.outputs());
    let mut outputs = vec![f32::NAN; len * width];
    let mut bounds = [&[0, reset, len], cuts].concat();
    bounds.sort_unstable();
    bounds.dedup();
    for part in bounds.windows(2) {
        if part[0] == reset {
            model.restart(&mut state, 0).unwrap();
        }
        sequence.forward(model, part[0]..part[1], &mut state, &mut outputs[part[0] * width..part[1] * width], &mut workspace);
    }
    outputs
}

/// Long enough to exceed every window, filter and learned position of the configurations.
const LEN: usize = 170;
const RESET: usize = 9;

/// Compares every step of a sequence with a carried state and a reset on the way: equal to training, whatever the cuts.
fn compare_every_step(config: &ModelConfig) {
    let (trained, model) = both(config);
    let what = configs::label(config);
    let sequence = Sequence::new(model.reads(), LEN, 3);
    let steps = Segments::dense().with_resets(vec![vec![RESET]]).steps(1, LEN).unwrap();
    let expected = values(trained.forward(sequence.as_inputs(), trained.init_state(1), &steps, Mode::Evaluate).0);
    let whole = in_pieces(&model, &sequence, LEN, RESET, &[]);
    let width = model.outputs();
    assert_eq!(whole.len(), expected.len(), "{what}");
    for (step, (found, expected)) in whole.chunks_exact(width).zip(expected.chunks_exact(width)).enumerate() {
        assert!(distance(found, expected) <= TOLERANCE, "step {step}, {what}");
    }
    let anywhere = random_below(LEN, 1, whole.len() as u64)[0];
    let every: Vec<usize> = (0..LEN).collect();
    for cuts in [vec![1], vec![63, 64], vec![LEN - 1], vec![anywhere], every] {
        assert!(bits(&in_pieces(&model, &sequence, LEN, RESET, &cuts)) == bits(&whole), "cut at {cuts:?}, {what}");
    }
}

#[test]
fn every_setting_of_every_mixer() {
    for &mixer in MixerKind::ALL {
        for config in configs::mixers(mixer) {
            compare(&config);
            compare_every_step(&config);
        }
    }
}

macro_rules! ends_of_mixers {
    ($($kind:ident)+) => {
        /// Values in; classes, values and numbers out; means, pairs and positions.
        #[allow(non_snake_case, reason = "mixers have the names of their variants")]
        mod every_end {
            use super::*;

            $(#[test]
            fn $kind() {
                configs::ends(MixerKind::$kind).iter().for_each(compare_every_step);
            })+
        }
    };
}

minrnn_model::each_mixer!(ends_of_mixers);

#[test]
fn every_setting_of_a_block() {
    for config in configs::blocks() {
        compare(&config);
        compare_every_step(&config);
    }
}

#[test]
fn every_wiring() {
    for config in configs::wirings() {
        compare(&config);
        compare_every_step(&config);
    }
}

#[test]
fn a_packed_model_keeps_its_wiring() {
    for config in configs::wirings() {
        let (weights, packed) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        save_weights(&SequenceModel::new(&config, 7, &Device::flex()).unwrap(), weights.path()).unwrap();
        let read = || Weights::read(weights.path()).unwrap();
        PackedModel::write(packed.path(), &config, &mut read(), WeightFormat::F32, &[]).unwrap();
        let models = [Model::new(&config, &mut read(), WeightFormat::F32).unwrap(), Model::load(packed.path()).unwrap()];
        let [whole, unpacked] = models.map(|model| {
            let mut logits = vec![0.0; VOCAB_SIZE];
            model.prefill(&[[1, 2, 3, 4, 5]], &mut model.init_state(1).unwrap(), &mut logits, &mut Workspace::new()).unwrap();
            logits
        });
        assert_eq!(bits(&whole), bits(&unpacked), "{}", configs::label(&config));
    }
}

#[test]
fn whole_models() {
    for config in configs::language_models().into_iter().chain([configs::xlstm_stack()]) {
        compare(&config);
        compare_every_step(&config);
    }
    configs::sequence_models().iter().for_each(compare_every_step);
}

/// Each continues from what the other has read, there and back, whatever the mixer and the block.
#[test]
fn a_session_goes_on_in_the_other_form_of_the_model() {
    let whole = configs::language_models().into_iter().chain(configs::wirings()).chain(configs::blocks());
    let configs = MixerKind::ALL.iter().flat_map(|&mixer| configs::mixers(mixer)).chain(whole).chain([configs::xlstm_stack()]);
    for config in configs {
        let (trained, model) = both(&config);
        let what = configs::label(&config);
        for lens in [[1, 1], [3, 40]] {
            let prompts =
                lens.map(|len| random_below(VOCAB_SIZE, len, len as u64).into_iter().map(|token| token as u32).collect::<Vec<_>>());
            let mut training = Session::new(&trained, 2);
            training.prefill(&prompts).unwrap();
            let mut runtime = RuntimeSession::new(&model, 2).unwrap().restore(2, training.tensors()).unwrap();
            let mut back = Session::new(&trained, 2).restore(2, runtime.training_tensors().unwrap()).unwrap();
            for step in 0..4 {
                let tokens = [step, 7 - step];
                let expected = training.step(&tokens).unwrap();
                let [forth, back] = [runtime.step_rows(&[0, 1], &tokens).unwrap(), back.step(&tokens).unwrap()];
                for row in 0..2 {
                    assert!(distance(forth.row(row), expected.row(row)) <= TOLERANCE, "in the runtime after {lens:?}, {what}");
                    assert!(distance(back.row(row), expected.row(row)) <= TOLERANCE, "and back after {lens:?}, {what}");
                }
            }
        }
    }
}

/// Wide enough for every matmul to be split over threads.
#[test]
fn wide_models() {
    for &mixer in MixerKind::ALL {
        compare(&ModelConfig { d_model: 160, n_layers: 2, conv: true, ..configs::small(mixer) });
    }
    for wiring in [WiringKind::H3, WiringKind::Mamba] {
        let mixers = vec![MixerKind::S6, MixerKind::MinGru];
        compare(&ModelConfig { d_model: 160, n_layers: 2, wiring, mixers, ..configs::small(MixerKind::S6) });
    }
}

/// Rows of a policy, `[return | 4 numbers | 2 numbers of the previous action | time]`, of one episode.
fn steps_of_an_episode(len: usize) -> Vec<f32> {
    let row = |step: usize| {
        let mut row = random(8, 90 + step as u64);
        row[7] = step as f32 / 1000.0;
        row
    };
    (0..len).flat_map(row).collect()
}

#[test]
fn a_policy_acts_as_the_one_it_was_trained_as() {
    const STEPS: usize = 40;
    for &mixer in MixerKind::ALL {
        let config = ModelConfig { vocab_size: 0, input_width: 8, n_outputs: 2, n_layers: 2, max_seq_len: 70, ..configs::small(mixer) };
        let trained = perturbed(Decision::new(&config, 3, &Device::flex()).unwrap());
        let model = deployed(&trained, &config);
        assert!(model.is_policy() && model.reads() == Reads::Values { width: 8 } && model.outputs() == 2);
        let sequence = Sequence::Values { values: steps_of_an_episode(STEPS), width: 8 };
        let expected = values(trained.forward(sequence.as_inputs(), None, &StepCodes::dense(), Mode::Evaluate).0);
        let whole = in_pieces(&model, &sequence, STEPS, 0, &[]);
        assert_eq!(whole.len(), expected.len(), "{mixer}");
        for (step, (found, expected)) in whole.chunks_exact(2).zip(expected.chunks_exact(2)).enumerate() {
            assert!(distance(found, expected) <= TOLERANCE, "step {step} of {mixer}");
        }
        for cuts in [vec![1], vec![2, 3, 30], (0..STEPS).collect()] {
            assert!(bits(&in_pieces(&model, &sequence, STEPS, 0, &cuts)) == bits(&whole), "{mixer} cut at {cuts:?}");
        }
        // Half of the episode again after a reset, which forgets the first half.
        let again = in_pieces(&model, &sequence, STEPS, STEPS / 2, &[]);
        let Sequence::Values { values: rows, .. } = &sequence else { unreachable!() };
        let second = Sequence::Values { values: rows[STEPS / 2 * 8..].to_vec(), width: 8 };
        assert!(bits(&in_pieces(&model, &second, STEPS / 2, 0, &[])) == bits(&again[STEPS..]), "{mixer}");
    }
}

/// As everywhere else, where a model that cannot distinguish two tokens knows neither.
#[test]
fn of_equal_logits_none_is_right_in_the_score_of_a_text() {
    let config = ModelConfig { tie_embeddings: false, ..configs::small(MixerKind::MinGru) };
    let mut trained = SequenceModel::new(&config, 7, &Device::flex()).unwrap();
    let head = trained.head.as_mut().expect("a head of its own");
    head.weight = Param::from_tensor(Tensor::zeros(head.weight.dims(), &Device::flex()));
    let model = deployed(&trained, &config);
    let tokens: Vec<u32> = random_below(VOCAB_SIZE, 40, 3).into_iter().map(|token| token as u32).collect();
    let found = score(&model, Some(&model), &tokens, &AtomicBool::new(false)).unwrap().unwrap();
    assert_eq!((found.evaluation.accuracy, found.agreement), (Some(0.0), Some(1.0)));
    assert!((found.evaluation.loss - (VOCAB_SIZE as f64).ln()).abs() < 1e-12, "{}", found.evaluation.loss);
}

#[test]
fn a_restored_policy_begins_unless_its_memory_says_that_it_has() {
    let config = ModelConfig { vocab_size: 0, input_width: 8, n_outputs: 2, ..configs::small(MixerKind::MinGru) };
    let model = deployed(&Decision::new(&config, 3, &Device::flex()).unwrap(), &config);
    let (steps, mut workspace) = (steps_of_an_episode(3), Workspace::new());
    let mut read = |begun: f32| {
        let mut memory = model.init_state(1).unwrap().values().to_vec();
        let at = memory.len() - 2;
        memory[at] = begun;
        let mut outputs = vec![0.0; 3 * model.outputs()];
        let mut state = State::from_values(&model, 1, memory).unwrap();
        model.forward_values(&steps, &mut state, &mut outputs, &mut workspace).unwrap();
        outputs
    };
    assert_eq!([-1.0, -0.0, f32::MIN].map(&mut read), [0.0; 3].map(&mut read));
    assert!(read(1.0) != read(0.0));
}

#[test]
fn a_packed_policy_keeps_how_its_steps_become_numbers() {
    let config = ModelConfig { vocab_size: 0, input_width: 8, n_outputs: 2, ..configs::small(MixerKind::MinGru) };
    let trained = Decision::new(&config, 3, &Device::flex()).unwrap();
    let (weights, packed) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
    save_weights(&trained, weights.path()).unwrap();
    let encoding =
        StepEncoding { mean: vec![0.5; 4], deviation: vec![2.0; 4], action_width: 2, return_scale: 10.0, best_return: Some(7.5) };
    let json = serde_json::to_vec(&encoding).unwrap();
    let write = |sections: &[Section<'_>]| {
        PackedModel::write(packed.path(), &config, &mut Weights::read(weights.path()).unwrap(), WeightFormat::Int4, sections)?;
        PackedModel::read(packed.path())
    };
    let read = write(&[Section::policy(&json)]).unwrap();
    assert!(read.model.is_policy());
    assert_eq!(serde_json::from_slice::<StepEncoding>(&read.policy.unwrap()).unwrap(), encoding);
    let format = |name: &str| read.tensors.iter().find(|entry| entry.name == name).unwrap().format;
    assert_eq!(
        ["observation.weight", "times.weight", "backbone.blocks.0.mixer.in_proj.weight"].map(format),
        [WeightFormat::F32, WeightFormat::Int8, WeightFormat::Int4]
    );
    assert!(write(&[]).unwrap_err().to_string().contains("without a section 'policy'"));
}

/// A table of sequences of these lengths, with a class and a number at each step, and its file.
fn table_of(lengths: &[usize]) -> (TableTask, Vec<Series>, tempfile::NamedTempFile) {
    let task = TableTask::Classify(Classifier {
        columns: vec!["x".into()],
        group: "id".into(),
        target: "class".into(),
        time: None,
        classes: vec!["a".into(), "b".into(), "c".into()],
        normalization: Normalization { mean: vec![0.0], deviation: vec![0.5] },
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
        rows_per_step: None,
    });
    let mut text = "id,class,x\n".to_owned();
    for (at, &len) in lengths.iter().enumerate() {
        random(len, at as u64).iter().for_each(|x| text += &format!("s{at},a,{x}\n"));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let series = read_series(&task, file.path()).unwrap();
    (task, series, file)
}

/// The result of `compute` in a pool of this many threads.
fn on<R: Send>(threads: usize, compute: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(compute)
}

#[test]
fn predictions_are_those_of_each_sequence_alone_on_any_number_of_threads() {
    // More than one bunch of long sequences, then short ones, then a long one among them.
    let lengths: Vec<usize> = (0..20).map(|at| 90 + 37 * at).chain((0..50).map(|at| 1 + at % 5)).chain([1500, 2]).collect();
    let (task, series, _file) = table_of(&lengths);
    // Only sequences of two or more steps are scored.
    let (_, scorable, file) = table_of(&lengths.iter().map(|&length| length.max(2)).collect::<Vec<_>>());
    let table = Data::unseen_table(file.path(), &task).unwrap();
    let Data::Task(table) = table else { panic!("a table is a task") };
    let stop = AtomicBool::new(false);
    for mixer in [MixerKind::S4d, MixerKind::MinGru, MixerKind::Gru] {
        let config = ModelConfig { mixer, vocab_size: 0, input_width: 1, n_outputs: 3, d_model: 64, n_layers: 2, ..ModelConfig::default() };
        let (_, model) = both(&config);
        let predicted = |threads: usize, series: &[Series]| on(threads, || predict(&model, &task, series, &stop)).unwrap().unwrap();
        let scored = |threads: usize| {
            let mut set = table.evaluation(8, 0, Purpose::TestData, 1).unwrap();
            on(threads, || evaluate(&model, &mut *set, None, &stop)).unwrap().unwrap()
        };
        let expected: Vec<Prediction> = series.iter().flat_map(|one| predicted(1, std::slice::from_ref(one))).collect();
        let score = scored(1);
        assert_eq!(score.n_scored, scorable.len() as u64);
        for threads in [1, 2, 3, 7] {
            assert!(predicted(threads, &series) == expected, "{mixer}, {threads} threads");
            assert_eq!(scored(threads), score, "{mixer}, {threads} threads");
        }
        assert!(predict(&model, &task, &series, &stop).unwrap().unwrap() == expected, "{mixer}, outside a pool");
    }
    let (_, model) = both(&ModelConfig { vocab_size: 0, input_width: 1, n_outputs: 3, ..configs::small(MixerKind::MinGru) });
    stop.store(true, Ordering::Relaxed);
    assert_eq!(predict(&model, &task, &series, &stop).unwrap(), None);
    // The same columns, and another number of classes.
    let config = ModelConfig { vocab_size: 0, input_width: 1, n_outputs: 2, d_model: 8, ..ModelConfig::default() };
    assert_eq!(
        predict(&both(&config).1, &task, &series, &stop).unwrap_err().to_string(),
        "the description of the task cannot be used: it is that of a model with 1 inputs and 3 outputs, found one with 1 and 2; take the task of this model"
    );
}

#[test]
fn of_several_sequences_without_a_prediction_the_first_is_named_on_any_number_of_threads() {
    let (task, series, _file) = table_of(&(0..60).map(|at| 20 + 23 * (60 - at)).collect::<Vec<_>>());
    let config = ModelConfig { vocab_size: 0, input_width: 1, n_outputs: 3, ..configs::small(MixerKind::MinGru) };
    let (trained, _) = both(&config);
    let file = tempfile::NamedTempFile::new().unwrap();
    save_weights(&trained, file.path()).unwrap();
    let stop = AtomicBool::new(false);
    // With a head so large that predictions overflow for some of them.
    let model = |largest: f32| {
        let mut weights = Weights::read(file.path()).unwrap();
        let names: Vec<String> = weights.names().map(str::to_owned).collect();
        let tensors = names.into_iter().map(|name| {
            let mut tensor = weights.take_any(&name).unwrap();
            if name.starts_with("head.") {
                let was = tensor.data().iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
                tensor.data_mut().iter_mut().for_each(|x| *x = *x / was * largest);
            }
            (name, tensor)
        });
        let tensors: Vec<_> = tensors.collect();
        Model::new(&config, &mut Weights::of("of a large head", tensors), WeightFormat::F32).unwrap()
    };
    let mut n_tried = 0;
    for largest in (0..60).map(|at| 3e38 * 0.95f32.powi(at)) {
        let model = model(largest);
        let faults: Vec<String> = series
            .iter()
            .filter_map(|one| on(1, || predict(&model, &task, std::slice::from_ref(one), &stop)).err().map(|error| error.to_string()))
            .collect();
        let Some(first) = faults.first().filter(|first| faults.len() > 1 && !first.contains("'s0'")) else { continue };
        n_tried += 1;
        for threads in [1, 2, 3, 7] {
            let found = on(threads, || predict(&model, &task, &series, &stop)).unwrap_err().to_string();
            assert_eq!(found, *first, "{threads} threads, weights of up to {largest}");
        }
    }
    assert!(n_tried > 2, "{n_tried} of the sizes leave the first sequence a prediction, and not two others");
}
