//! The benefit of highway output and of the forget gate's lower bound: selective copying of 4 tokens among 128 by three blocks of minGRU,
//! with each and with both, for a fixed number of iterations.
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/highway_and_floor [iterations]
//! ```

mod common;

use minrnn::Result;
use minrnn::data::{BatchSource, SelectiveCopying, SelectiveCopyingConfig};
use minrnn::model::SequenceModel;
use minrnn::rng::Purpose;
use minrnn_model::{FeedForwardKind, ForgetFloor, InitialState, ModelConfig};

fn main() -> Result<()> {
    let iterations = common::iterations(600);
    let task = SelectiveCopyingConfig { length: 128, n_tokens: 4, ..SelectiveCopyingConfig::default() };
    let batch = |purpose, index| SelectiveCopying::new(task.clone(), 32, 0, purpose)?.batch(index, 0);
    println!("highway  forget_floor  parameters  accuracy");
    for (highway, forget_floor) in
        [(false, ForgetFloor::None), (true, ForgetFloor::None), (false, ForgetFloor::Learned), (true, ForgetFloor::Learned)]
    {
        let config = ModelConfig {
            highway,
            forget_floor,
            vocab_size: task.vocab_size,
            d_model: 32,
            expansion: 4.0,
            n_layers: 3,
            ff: FeedForwardKind::None,
            initial_state: InitialState::Learned,
            ..Default::default()
        };
        let model = SequenceModel::new(&config, 1, &common::device())?;
        let parameters = minrnn::checkpoint::parameter_count(&model);
        let train = |model: &SequenceModel, iteration| {
            common::loss(model, &batch(Purpose::TrainData, iteration).expect("the task makes batches without end"))
        };
        let model = common::train(model, iterations, 3e-3, train)?;
        let accuracy = common::accuracy(&model, &batch(Purpose::TestData, 0)?);
        println!("{highway:<7}  {forget_floor:<12}  {parameters:>10}  {accuracy:.3}");
    }
    Ok(())
}
