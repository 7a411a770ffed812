//! Training: the experiment, the schedule, the run directory and its records.
//!
//! * [`Trainer`]: the loop, from an experiment and a run directory to a trained model.
//! * [`Experiment`]: model, data and training settings, from a small file; [`experiments`] lists the built-in ones.
//! * [`Request`]: an experiment and its data as a user asks for them.
//! * [`Schedule`]: the learning rate of an iteration.
//! * [`RunDir`]: the directory of a run and its checkpoints; [`find_checkpoint`] for read-only access.
//! * [`differentiate`], [`Optimizer`]: the parts of your own training loop, with your own batches ([`MicroBatch`]).
//! * [`evaluate`]: loss and accuracy of a model; [`evaluate_by_frequency`] and [`evaluate_length`] break them down.
//! * [`TextSize`]: a loss per token as bits per byte.
//! * [`training_memory`]: how much memory a training will need.
//! * [`Group`]: the processes of a training on several machines; [`Ranks`] connects them.
//! * [`MetricsLog`], [`EventsFile`], [`draw_curves`]: the numbers of a run as lines, for TensorBoard, and as a picture.

mod alike;
mod amount;
mod average;
mod bits_per_byte;
mod by_frequency;
mod by_length;
mod check;
mod continues;
mod curves;
mod data;
mod data_config;
mod differentiate;
mod evaluate;
mod experiment;
pub mod experiments;
mod files;
mod group;
mod head;
mod kept_table;
mod loss;
mod memory;
mod metrics;
mod optimizer;
mod predictor;
mod presets;
mod progress;
mod ranks;
mod rates;
mod record;
mod report_json;
mod request;
mod rounds;
mod run_dir;
mod schedule;
pub(crate) mod settings;
mod start;
mod temperature;
mod tensorboard;
mod tensors;
mod train_config;
mod trainer;
mod untrained;

pub use alike::expect_same_scores;
pub use bits_per_byte::TextSize;
pub use by_frequency::{FrequencyScore, evaluate_by_frequency, token_counts};
pub use by_length::{LengthScore, evaluate_length};
pub(crate) use curves::smooth;
pub use curves::{CurveLabels, draw_curves};
pub(crate) use data::TOKENS_FILE;
pub use data::{Data, FINAL_BATCHES, Windows, full_pass};
pub use data_config::{
    Corpus, DataConfig, ForecastConfig, FormalLanguageConfig, ImageConfig, PolicyConfig, TableConfig, Task, TextConfig, WindowSampling,
};
pub use differentiate::{Differentiated, MicroBatch, differentiate, differentiate_policy};
pub use evaluate::{Evaluation, compare, evaluate, scaled_accuracy, unscaled_accuracy};
pub(crate) use evaluate::{is_right, loss_of};
pub use experiment::{Expect, Experiment, MAX_EXPERIMENT_BYTES, Metric};
pub use files::{find_data, is_same_data, readable, readable_folder};
pub use group::{Group, Trait};
pub use loss::Loss;
pub use memory::{evaluation_memory, training_memory, training_memory_of};
pub use metrics::{MetricsLog, Record, read_metrics};
pub use optimizer::{GradientMap, Moment, Optimizer};
pub use predictor::{Predictor, Wanted};
pub use progress::{Evaluated, KEPT_BEST, MAX_PROGRESS_BYTES, PROGRESS_FILE, Progress, Refit};
pub use ranks::{Alone, Ranks};
pub use record::{METRICS_FILE, duration};
pub use request::{Asked, Request};
pub use rounds::Told;
pub(crate) use run_dir::named_in;
pub use run_dir::{
    CHECKPOINTS, EXPERIMENT_FILE, Pointer, RunDir, TRAINING_FILE, checkpoint, find_checkpoint, find_scored, has_learned_all, iteration_of,
    run_of,
};
pub use schedule::Schedule;
pub use tensorboard::EventsFile;
pub use train_config::{DecayGroups, Keep, MAX_THREADS, ScheduleKind, TrainConfig};
pub use trainer::{Ending, Event, FinalReport, Trainer, Update, final_batches};
pub use untrained::ResolvedModel;
