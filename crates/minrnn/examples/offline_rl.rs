//! Learning to act from recorded episodes alone: the Decision wiring around any mixer.
//!
//! Without a file, a point on a plane is to be pushed to the origin. The recorded pushes are weak and noisy; the policy is asked for the
//! return of the best recorded episode and for that of the average one, and plays. With a file made by `tools/convert_trajectories.py` the settings are those of the
//! published experiments, the policy is saved beside it, and the error of the actions is printed alone: there is no simulator to play in.
//!
//! ```text
//! cargo build --release --workspace --examples
//! target/release/examples/offline_rl [MIXER [ITERATIONS]]                                   # min-gru, 1000
//! target/release/examples/offline_rl MIXER ITERATIONS FILE.trajectories [D_MODEL [LR]]     # 128, 1e-3
//! ```

use std::str::FromStr;
use std::time::Instant;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use minrnn::data::offline_rl::{Behavior, LeftPadding, OfflineRl, PointMass, Trajectories};
use minrnn::data::{Batch, SequenceTask};
use minrnn::model::Decision;
use minrnn::nn::Mode;
use minrnn::rng::{self, Purpose};
use minrnn::rollout::{Memory, Rollout, normalized_score};
use minrnn::train::{DecayGroups, GradientMap, MicroBatch, Optimizer, Schedule, ScheduleKind, TrainConfig};
use minrnn::{Error, Policy, Result};
use minrnn_model::{DropoutSite, MixerKind, ModelConfig, NormKind};

const CONTEXT: usize = 20;
const SEED: u64 = 0;
const BATCHES_SCORED: u64 = 20;
const EPISODES: usize = 100;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(if error.is_wrong_input() { 2 } else { 1 });
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mixer = match arguments.first() {
        None => MixerKind::MinGru,
        Some(name) => *MixerKind::ALL.iter().find(|kind| kind.to_string() == *name).ok_or_else(|| {
            Error::Config(format!("expected a mixer such as min-gru, min-lstm, mamba or attention as the first argument, found '{name}'"))
        })?,
    };
    // Recurrent mixers read the padding before short windows, attention does not.
    let padding = if mixer == MixerKind::Attention { LeftPadding::Cut } else { LeftPadding::Seen };
    match arguments.get(2) {
        None => point_mass(mixer, padding, argument(&arguments, 1, 1000)?),
        Some(path) => {
            let task = OfflineRl::new(Trajectories::read(path)?, CONTEXT, 1000.0, padding)?;
            let config = model(&task, mixer, argument(&arguments, 3, 128)?, 3);
            let training =
                TrainConfig { warmup: 10_000, lr: argument(&arguments, 4, 1e-3)?, ..training(argument(&arguments, 1, 100_000)?) };
            let model = train(&task, &config, &training)?;
            let directory = format!("{path}.policy");
            Policy { config, encoding: task.encoding().clone(), model }.save(&directory)?;
            println!("policy: {directory}");
            Ok(())
        }
    }
}

/// Argument `index` as a number above 0, else `default`.
fn argument<T: FromStr + PartialOrd + Default>(arguments: &[String], index: usize, default: T) -> Result<T> {
    let Some(text) = arguments.get(index) else { return Ok(default) };
    text.parse()
        .ok()
        .filter(|number| *number > T::default())
        .ok_or_else(|| Error::Config(format!("expected a number above 0, found '{text}'")))
}

fn model(task: &OfflineRl, mixer: MixerKind, d_model: usize, n_layers: usize) -> ModelConfig {
    ModelConfig {
        mixer,
        input_width: task.encoding().width(),
        n_outputs: task.encoding().action_width,
        d_model,
        n_layers,
        norm: NormKind::Layer,
        dropout: 0.1,
        dropout_sites: vec![DropoutSite::Embedding, DropoutSite::FeedForward],
        ..Default::default()
    }
}

fn training(max_iterations: u64) -> TrainConfig {
    TrainConfig {
        batch_size: 64,
        max_iterations,
        lr: 1e-3,
        warmup: 100,
        schedule: ScheduleKind::Constant,
        weight_decay: 1e-4,
        decay_groups: DecayGroups::All,
        betas: [0.9, 0.999],
        clip_norm: 0.25,
        eval_every: (max_iterations / 10).max(1),
        ..Default::default()
    }
}

/// Trains on recorded pushes, then plays with both memories.
fn point_mass(mixer: MixerKind, padding: LeftPadding, iterations: u64) -> Result<()> {
    let record = |behavior, purpose| PointMass::record(behavior, 400, SEED, purpose);
    let recorded = record(Behavior::Medium, Purpose::TrainData);
    let [random, expert] = [Behavior::Random, Behavior::Expert].map(|behavior| record(behavior, Purpose::ValidationData).mean_return());
    let score = |mean_return| normalized_score(mean_return, random, expert);
    let (mean_return, target_return) = (recorded.mean_return(), recorded.best_return());
    println!("mean return: random {random:.2} (score 0), expert {expert:.2} (score 100)");
    println!("recorded: {} episodes, {mean_return:.2} (score {:.1}), best {target_return:.2}", recorded.len(), score(mean_return));

    let task = OfflineRl::new(recorded, CONTEXT, 100.0, padding)?;
    let policy = train(&task, &model(&task, mixer, 64, 2), &training(iterations))?.valid();
    for target_return in [target_return, mean_return] {
        for (name, memory) in [("windowed", Memory::Window { context: CONTEXT, padding }), ("carried state", Memory::Carried)] {
            let start = Instant::now();
            let rollout = Rollout { target_return, memory, seed: SEED };
            let played = rollout.play(&policy, task.encoding(), &mut vec![PointMass::default(); EPISODES])?;
            let (earned, seconds) = (played.mean_return(), start.elapsed().as_secs_f64());
            println!("asked for {target_return:.2}, {name}: {EPISODES} episodes, {earned:.2} (score {:.1}), {seconds:.1} s", score(earned));
        }
    }
    Ok(())
}

/// Trains a policy and prints the error of its actions as it goes.
fn train(task: &OfflineRl, config: &ModelConfig, training: &TrainConfig) -> Result<Decision> {
    let device = Device::flex().autodiff();
    let mut policy = Decision::new(config, SEED, &device)?;
    let parameters = minrnn::checkpoint::parameter_count(&policy);
    println!(
        "{}: {parameters} parameters, {} trajectories, {} steps",
        config.mixer,
        task.trajectories().len(),
        task.trajectories().n_steps()
    );
    println!("iteration  action error, trained  held out  seconds");
    let (mut optimizer, schedule) = (Optimizer::new(training), Schedule::new(training));
    let mut batches = task.training(training.batch_size, SEED)?;
    let mut held_out = task.evaluation(training.batch_size, SEED, Purpose::ValidationData, BATCHES_SCORED)?;
    let (start, mut recent) = (Instant::now(), Vec::new());
    for iteration in 0..training.max_iterations {
        let mode = Mode::Train { dropout_key: rng::key(SEED, Purpose::Dropout, iteration) };
        let error = action_error(&policy, &batches.batch(iteration, 0)?, &device, mode)?;
        let gradients = GradientMap::new(&policy, &error.clone().backward());
        recent.push(error.into_scalar::<f32>());
        policy = optimizer.update(policy, gradients, 1.0, schedule.lr(iteration), iteration)?.0;
        if (iteration + 1) % training.eval_every == 0 {
            let plain = policy.valid();
            let mut sum = 0.0;
            for index in 0..held_out.n_batches() {
                let error = action_error(&plain, &held_out.batch(index)?, &Device::flex(), Mode::Evaluate)?;
                sum += error.into_scalar::<f32>() / held_out.n_batches() as f32;
            }
            let trained = recent.iter().sum::<f32>() / recent.len() as f32;
            recent.clear();
            println!("{:>9}  {trained:>21.4}  {sum:>8.4}  {:>7.1}", iteration + 1, start.elapsed().as_secs_f64());
        }
    }
    Ok(policy)
}

fn action_error(policy: &Decision, batch: &Batch, device: &Device, mode: Mode) -> Result<Tensor<1>> {
    let MicroBatch { inputs, targets, mask, steps } = MicroBatch::new(batch, device)?;
    Ok(policy.loss(inputs, targets, mask, &steps, mode))
}
