//! From the input to the residual stream.

use minrnn_model::{CheckedConfig, POLICY_PLACES, POLICY_TIME_SCALE, POLICY_TIMES, Positions};

use crate::graph::{Graph, Initial, Value};
use crate::norm;
use crate::proto::DataType;
use crate::{Result, TOKEN, VALUES};

/// The row of the residual stream `[B, D]` for the step being read.
pub(crate) fn row(g: &mut Graph<'_>, config: &CheckedConfig) -> Result<Value> {
    let d = config.d_model;
    let x = match config.input_width {
        0 => {
            let token = g.input(TOKEN, DataType::Int64, &[]);
            let table = g.parameter("embedding.weight", &[config.vocab_size, d])?;
            g.gather(table, token)
        }
        width => {
            let values = g.input(VALUES, DataType::Float, &[width]);
            g.linear("input", values, [width, d], true)?
        }
    };
    if config.positions != Positions::Learned {
        return Ok(x);
    }
    let count = g.state("places.count", &[1], Initial::All(0.0));
    let table = g.parameter("positions.weight", &[config.max_seq_len, d])?;
    // A model has learned nothing beyond its last position; later steps stay there.
    let last = g.number((config.max_seq_len - 1) as f32);
    let place = g.min(count, last);
    let place = look_up(g, table, place);
    let next = g.next_count(count);
    g.keep("places.count", next);
    Ok(g.add(x, place))
}

/// The rows of a policy's step, each `[B, D]`: the previous action, the return, and the observation; and whether each session has begun, `[B, 1]`: if
/// it has not, there is no previous action, and that row does not count.
pub(crate) fn policy_rows(g: &mut Graph<'_>, config: &CheckedConfig) -> Result<([Value; POLICY_PLACES], Value)> {
    let (d, observed, acts) = (config.d_model, config.observation_width(), config.n_outputs);
    let values = g.input(VALUES, DataType::Float, &[config.input_width]);
    let [to_go, observation, action, time] = g.split(values, 1, [1, observed, acts, 1]);
    let table = g.parameter("times.weight", &[POLICY_TIMES, d])?;
    let (begun, last) = (g.state("policy.begun", &[1], Initial::All(0.0)), g.state("policy.time", &[1], Initial::All(0.0)));
    let time = g.times(time, POLICY_TIME_SCALE as f32);
    let time = g.round(time);
    let (zero, most) = (g.number(0.0), g.number((POLICY_TIMES - 1) as f32));
    let time = g.max(time, zero);
    let time = g.min(time, most);
    let parts = [("action", action, acts, last), ("to_go", to_go, 1, time), ("observation", observation, observed, time)];
    let mut rows = [values; POLICY_PLACES];
    for (row, (name, part, width, time)) in rows.iter_mut().zip(parts) {
        let (mapped, time) = (g.linear(name, part, [width, d], true)?, look_up(g, table, time));
        let sum = g.add(mapped, time);
        *row = norm::layer(g, "norm", d, true, sum)?;
    }
    let has_begun = g.greater(begun, zero);
    let one = g.number(1.0);
    let now = g.max(begun, one);
    g.keep("policy.begun", now);
    g.keep("policy.time", time);
    Ok((rows, has_begun))
}

/// Rows of `table` at `places` `[B, 1]`, which are whole numbers: `[B, D]`.
fn look_up(g: &mut Graph<'_>, table: Value, places: Value) -> Value {
    let places = g.cast(places, DataType::Int64);
    let places = g.flatten(places);
    g.gather(table, places)
}
