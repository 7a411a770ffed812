//! From recorded episodes to a packed policy that acts.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Finished, Scratch, Training, minrnn, shown};
use serde_json::Value;

/// Episodes of the point mass by somebody who is neither useless nor good.
fn recorded(scratch: &Scratch, episodes: &str) -> PathBuf {
    let file = scratch.path("medium.trajectories");
    Finished::of(minrnn(&["rollout", "--behavior", "medium", "--episodes", episodes, "--record"]).arg(&file)).ok();
    file
}

fn training(scratch: &Scratch, data: &Path, settings: &[&str]) -> Training {
    let args = ["--task", "policy", "--data", &shown(data)].iter().map(ToString::to_string).collect();
    Training { args, ..scratch.task("run", settings) }
}

fn rollout(args: &[&str], model: &Path) -> Finished {
    Finished::of(minrnn(&["rollout"]).arg(model).args(args))
}

fn json(finished: Finished) -> Value {
    serde_json::from_str(&finished.ok().stdout).unwrap()
}

#[test]
fn a_policy_trains_packs_and_acts_better_than_chance() {
    let scratch = Scratch::new();
    let data = recorded(&scratch, "60");
    let settings = ["d_model=32", "max_iterations=150", "lr=0.003", "batch_size=16", "eval_every=50", "checkpoint_every=50"];
    let training = training(&scratch, &data, &settings);
    let trained = training.run().ok();
    assert!(trained.stdout.contains("test mean squared error") && trained.stdout.contains("next: minrnn rollout"), "{trained:?}");
    let eval = Finished::of(minrnn(&["eval", "--json"]).arg(&training.out)).ok();
    let scored: Value = serde_json::from_str(eval.stdout.lines().last().unwrap()).unwrap();
    assert!(scored["loss"].as_f64().unwrap() < 0.2, "{eval:?}");

    let packed = scratch.path("policy.minrnn");
    let pack = Finished::of(minrnn(&["pack", "--weights", "f32", "-o"]).arg(&packed).arg(&training.out)).ok();
    assert!(pack.stdout.contains("next: minrnn rollout"), "{pack:?}");
    let of_run = json(rollout(&["--json", "--episodes", "20"], &training.out));
    let of_packed = json(rollout(&["--json", "--episodes", "20"], &packed));
    assert!(of_packed["score"].as_f64().unwrap() > 30.0, "{of_packed}");
    for key in ["mean_return", "score", "target_return", "steps"] {
        assert_eq!(of_packed[key], of_run[key], "{key}");
    }
    // The window of the training is as long as an episode's beginning, and cut before it.
    let windowed = json(rollout(&["--json", "--episodes", "3", "--window", "100"], &packed));
    let carried = json(rollout(&["--json", "--episodes", "3"], &packed));
    let mean = |value: &Value| value["mean_return"].as_f64().unwrap();
    assert!((mean(&windowed) - mean(&carried)).abs() < 1e-3, "{windowed} {carried}");
    let again = rollout(&["--episodes", "3"], &packed).ok().stdout;
    assert!(again.contains("95 % interval") && again.contains("n = 3") && again.contains("asked for"), "{again}");
    assert_eq!(again, rollout(&["--episodes", "3"], &packed).ok().stdout);

    let played = scratch.path("played.trajectories");
    Finished::of(minrnn(&["rollout", "--episodes", "2", "--record"]).arg(&played).arg(&packed)).ok();
    assert!(played.metadata().unwrap().len() > 200 * 7 * 4);
    let inspected = Finished::of(minrnn(&["inspect"]).arg(&packed)).ok();
    assert!(inspected.stdout.contains("policy"), "{inspected:?}");
}

#[test]
fn an_interrupted_policy_goes_on_where_it_was() {
    let scratch = Scratch::new();
    let data = recorded(&scratch, "8");
    let whole = Training { out: scratch.path("whole"), ..training(&scratch, &data, &["checkpoint_blocks=true"]) };
    whole.run().ok();
    let parts = training(&scratch, &data, &["checkpoint_blocks=true", "max_iterations=9"]);
    parts.run().ok();
    let parts = Training { args: Vec::new(), settings: vec!["max_iterations=20".into()], ..parts };
    parts.resume().ok();
    let weights = |out: &Path| {
        let last = fs::read_to_string(out.join("checkpoints/last")).unwrap_or_default();
        let directory = if last.is_empty() { out.join("checkpoints/20") } else { out.join("checkpoints").join(last.trim()) };
        fs::read(directory.join("model.safetensors")).unwrap()
    };
    assert!(weights(&whole.out) == weights(&parts.out));
    // Other episodes under the same name are not what the run began with.
    let other = Finished::of(minrnn(&["rollout", "--behavior", "expert", "--episodes", "8", "--record"]).arg(&data));
    other.ok();
    parts.resume().failed(2, &["medium.trajectories", "changed"]);
}

/// A file of trajectories whose checksums, CRC-32, are those of its bytes.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let bit = |crc: u32| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    let crc = |bytes: &[u8]| !bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc)));
    let contents = crc(&bytes[36..]);
    bytes[28..32].copy_from_slice(&contents.to_le_bytes());
    let header = crc(&bytes[..32]);
    bytes[32..36].copy_from_slice(&header.to_le_bytes());
    bytes
}

#[test]
fn actions_where_no_policy_acts_are_refused_by_their_place_and_steps_without_an_ending_are_counted() {
    let scratch = Scratch::new();
    let bytes = fs::read(recorded(&scratch, "4")).unwrap();
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (observation, action, steps) = (number(12), number(16), number(20));
    assert_eq!((steps, sealed(bytes.clone()) == bytes), (400, true));
    let mut far = bytes.clone();
    let place = 36 + 4 * (steps * observation + action * 123 + 1);
    far[place..place + 4].copy_from_slice(&(-1.5f32).to_le_bytes());
    let far = scratch.write("far.trajectories", sealed(far));
    let told = ["far.trajectories'", "an action outside -1 to 1", "step 123, number 1 of its action", "is -1.5;"];
    training(&scratch, &far, &[]).run().refused(&told);

    // The last of its flags is the end of the last episode.
    let mut endless = bytes.clone();
    *endless.last_mut().unwrap() = 0;
    let endless = scratch.write("endless.trajectories", sealed(endless));
    let finished = training(&scratch, &endless, &["max_iterations=2"]).run().ok();
    assert!(finished.stderr.contains("left out: 100 of 400 steps, which no terminal or timeout follows\n"), "{finished:?}");
    let whole =
        Training { out: scratch.path("whole"), ..training(&scratch, &scratch.write("whole.trajectories", bytes), &["max_iterations=2"]) };
    assert!(!whole.run().ok().stderr.contains("left out"));
}

#[test]
fn what_cannot_act_or_be_read_is_told() {
    let scratch = Scratch::new();
    let text = scratch.training("text", &[]);
    text.run().ok();
    rollout(&[], &text.out).refused(&["it is not a policy", "task = policy"]);
    Finished::of(&mut minrnn(&["rollout"])).failed(2, &["--behavior"]);
    // A scripted player sees no window.
    let padded = Finished::of(&mut minrnn(&["rollout", "--behavior", "random", "--left-padding", "seen"]));
    assert!(padded.code == Some(2) && padded.stderr.contains("cannot be used with"), "{padded:?}");
    rollout(&[], &scratch.path("nowhere")).refused(&["nowhere"]);
    let random = Finished::of(&mut minrnn(&["rollout", "--behavior", "random"])).ok();
    assert!(random.stdout.contains("100 episodes of random"), "{random:?}");

    let start = |data: &Path| training(&scratch, data, &[]).run();
    start(&scratch.path("missing.trajectories")).refused(&["missing.trajectories"]);
    start(&scratch.write("table.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n")).refused(&["table.csv", "not a file of trajectories"]);
    let data = recorded(&scratch, "4");
    let bytes = fs::read(&data).unwrap();
    start(&scratch.write("short.trajectories", &bytes[..bytes.len() / 2])).refused(&["short.trajectories"]);
    let mut flipped = bytes.clone();
    flipped[1000] ^= 1;
    start(&scratch.write("flipped.trajectories", flipped)).refused(&["flipped.trajectories", "damaged"]);
    let plain = Training { args: vec!["policy".to_owned()], ..scratch.task("plain", &[]) };
    plain.run().refused(&["needs a file of trajectories", "--data FILE"]);
    let wrong = training(&scratch, &data, &["decision=false"]);
    wrong.run().refused(&["decision = true", "task = policy"]);
    training(&scratch, &data, &["pooling=mean"]).run().refused(&["a policy reads every step by itself"]);

    let run = training(&scratch, &data, &[]);
    run.run().ok();
    let packed = scratch.path("p.minrnn");
    Finished::of(minrnn(&["pack", "-o"]).arg(&packed).arg(&run.out)).ok();
    rollout(&["--target-return", "nan"], &packed).refused(&["--target-return", "finite"]);
    rollout(&["--target-return", "1e308"], &packed).refused(&["--target-return", "32 bits", "found 1e308"]);
    rollout(&["--record", &shown(&packed)], &packed).refused(&["is the input"]);
    Finished::of(minrnn(&["stream"]).arg(&packed)).refused(&["minrnn rollout"]);
    Finished::of(minrnn(&["predict", "--data", &shown(&data)]).arg(&packed)).refused(&["not trained on a table"]);
    Finished::of(minrnn(&["generate", "--prompt", "a"]).arg(&packed)).refused(&["p.minrnn"]);
    Finished::of(minrnn(&["eval", "--data", &shown(&data)]).arg(&packed)).refused(&["minrnn rollout"]);
    Finished::of(minrnn(&["generate", "--prompt", "a"]).arg(&run.out)).failed(2, &["run"]);
}
