//! `minrnn rollout`: a policy or a scripted player acts in the built-in environment.

use std::path::PathBuf;
use std::time::Instant;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use minrnn::data::offline_rl::{Behavior, Environment, LeftPadding, PointMass, Trajectories};
use minrnn::deployed::{Deployed, DeployedPolicy};
use minrnn::output::{expect_harmless, expect_replaceable, expect_writable};
use minrnn::rng::Purpose;
use minrnn::rollout::{Actor, Memory, Rollout, normalized_score};
use minrnn::words::counted;
use minrnn_reproduce::Summary;

use crate::exit::ExitCode;
use crate::failure::WrongInput;
use crate::output::print;
use crate::say::say;
use crate::threads::Threads;

/// The longest window that a policy is shown; with the most episodes it takes 2 GiB.
const MAX_WINDOW: i64 = 1 << 10;
/// Most episodes that are played side by side.
const MAX_EPISODES: i64 = 1 << 16;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory or packed model, trained with --task policy
    #[arg(value_name = "RUN|FILE")]
    model: Option<PathBuf>,
    /// Run a scripted player instead of a policy, for example to record it: random (uniform), medium (noisy, from useless to fair) or expert (close to
    /// the best possible)
    #[arg(long, value_name = "WHO", value_parser = behaviors(), conflicts_with_all = ["model", "target_return", "window", "left_padding"])]
    behavior: Option<Behavior>,
    /// Number of episodes
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=MAX_EPISODES)
    )]
    episodes: u32,
    /// The return to ask the policy for [default: that of the best episode it was trained on]
    #[arg(long, value_name = "RETURN", allow_negative_numbers = true)]
    target_return: Option<f64>,
    /// Show the policy the last N steps each time, instead of carrying its state
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=MAX_WINDOW))]
    window: Option<u32>,
    /// What the policy does with the padding before an episode in the first windows: cut (it starts after it) or seen (it reads it)
    #[arg(long, value_name = "HOW", value_parser = paddings(), requires = "window", default_value = "cut")]
    left_padding: LeftPadding,
    /// Seed of the episodes' initial states
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0)]
    seed: u64,
    /// Write the episodes to this file, which minrnn train --task policy reads
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

fn behaviors() -> impl TypedValueParser<Value = Behavior> {
    PossibleValuesParser::new(Behavior::ALL.iter().map(|behavior| behavior.name())).try_map(|name| name.parse())
}

fn paddings() -> impl TypedValueParser<Value = LeftPadding> {
    PossibleValuesParser::new(LeftPadding::ALL.iter().map(|padding| padding.name())).try_map(|name| name.parse())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.threads.install(|| play(&args))
}

fn play(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.record {
        expect_harmless(path, args.model.as_deref())?;
        expect_writable(path)?;
        expect_replaceable(path, "a file of trajectories", |start| start.starts_with(&Trajectories::MAGIC))?;
    }
    let started = Instant::now();
    let (played, actor, asked_for) = match (&args.model, args.behavior) {
        (Some(path), _) => {
            let deployed = Deployed::load(path)?;
            let mut policy = DeployedPolicy::new(&deployed)?;
            let (played, asked_for) = act(args, &mut policy)?;
            (played, path.display().to_string(), Some(asked_for))
        }
        (None, Some(behavior)) => (recorded(behavior, args, Purpose::TrainData), behavior.name().to_owned(), None),
        (None, None) => {
            return Err(WrongInput(
                "there is no policy to run: give a run or a packed model of minrnn train --task policy, or --behavior".to_owned(),
            )
            .into());
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    if let Some(path) = &args.record {
        played.write(path)?;
        say(format_args!("{}, {}: {}", counted(played.len(), "episode"), counted(played.n_steps(), "step"), path.display()));
    }
    let returns: Vec<f64> = played.iter().map(|episode| episode.total()).collect();
    let earned = Summary::of(&returns).expect("there is an episode");
    // From the same initial states as the policy.
    let [random, expert] = [Behavior::Random, Behavior::Expert].map(|behavior| recorded(behavior, args, Purpose::TestData).mean_return());
    let score = normalized_score(earned.mean, random, expert);
    if args.json {
        let object = serde_json::json!({
            "environment": "point-mass", "actor": actor, "episodes": played.len(), "steps": played.n_steps(), "target_return": asked_for,
            "mean_return": earned.mean, "interval": earned.reach().map(|reach| [earned.mean - reach, earned.mean + reach]),
            "score": score, "random_return": random, "expert_return": expert, "seconds": seconds,
        });
        print(format_args!("{object}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let interval = earned.reach().map_or_else(String::new, |reach| {
        format!(" (95 % interval {:.2} to {:.2}, n = {})", earned.mean - reach, earned.mean + reach, earned.n)
    });
    let asked_for = asked_for.map_or_else(String::new, |target| format!(", asked for {target:.2}"));
    print(format_args!(
        "point mass, {} of {actor}{asked_for}\nmean return {:.2}{interval}\nscore {score:.1} (0: random, {random:.2}; 100: expert, {expert:.2})\n",
        counted(earned.n, "episode"),
        earned.mean
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Episodes of the policy, and the return that it was asked for.
fn act(args: &Args, policy: &mut DeployedPolicy<'_>) -> anyhow::Result<(Trajectories, f64)> {
    let encoding = policy.encoding();
    let Some(target_return) = args.target_return.or(encoding.best_return) else {
        return Err(WrongInput("the policy has no record of its best return; ask for one with --target-return".to_owned()).into());
    };
    // As the policy reads it, in units of its scale.
    if !((target_return / encoding.return_scale) as f32).is_finite() {
        let sentence =
            format!("--target-return must be a finite number, also in the 32 bits that the policy reads, found {target_return:?}");
        return Err(WrongInput(sentence).into());
    }
    let mut points = vec![PointMass::default(); args.episodes as usize];
    let (found, needed) = (policy.encoding(), PointMass::default().widths());
    if [found.observation_width(), found.action_width] != needed {
        let [observed, pushed] = needed;
        let (observes, acts) = (found.observation_width(), found.action_width);
        let sentence = format!(
            "the policy observes {observes} numbers and acts with {acts}, but the built-in point mass gives {observed} and takes {pushed}; play \
             another environment with the library (minrnn::rollout)"
        );
        return Err(WrongInput(sentence).into());
    }
    let memory = args.window.map_or(Memory::Carried, |context| Memory::Window { context: context as usize, padding: args.left_padding });
    let rollout = Rollout { target_return, memory, seed: args.seed };
    let actor: &mut dyn Actor = policy;
    Ok((rollout.play_with(actor, encoding, &mut points)?, target_return))
}

/// Episodes of a scripted player.
fn recorded(behavior: Behavior, args: &Args, purpose: Purpose) -> Trajectories {
    PointMass::record(behavior, args.episodes.into(), args.seed, purpose)
}
