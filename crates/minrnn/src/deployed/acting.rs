//! A deployed policy acting.

use minrnn_stream::{Model, State, Workspace};

use super::Deployed;
use crate::data::offline_rl::{LeftPadding, StepEncoding};
use crate::rollout::{Actor, Shown};
use crate::{Error, Result};

/// A policy in the runtime, with the sessions of its episodes.
pub struct DeployedPolicy<'a> {
    model: &'a Model,
    encoding: &'a StepEncoding,
    sessions: Option<State>,
    workspace: Workspace,
}

impl<'a> DeployedPolicy<'a> {
    /// The policy of `deployed`, before its first action.
    ///
    /// # Errors
    /// When it is not a policy.
    pub fn new(deployed: &'a Deployed) -> Result<Self> {
        let (model, path) = (&deployed.model, &deployed.path);
        match &deployed.policy {
            Some(encoding) => Ok(Self { model, encoding, sessions: None, workspace: Workspace::new() }),
            None => Err(Error::malformed(path, "it is not a policy; expected a model that was trained with task = policy")),
        }
    }

    /// The encoding of steps as numbers.
    pub fn encoding(&self) -> &'a StepEncoding {
        self.encoding
    }
}

impl Actor for DeployedPolicy<'_> {
    fn widths(&self) -> [usize; 2] {
        [self.encoding.width(), self.encoding.action_width]
    }

    fn act(&mut self, shown: Shown<'_>) -> Result<Vec<f32>> {
        let [width, action_width] = self.widths();
        match shown {
            Shown::Next(rows) => {
                let batch = rows.len() / width;
                let mut actions = vec![0.0; batch * action_width];
                let mut sessions = match self.sessions.take() {
                    Some(sessions) => sessions,
                    None => self.model.init_state(batch)?,
                };
                self.model.step_values(rows, &mut sessions, &mut actions, &mut self.workspace)?;
                self.sessions = Some(sessions);
                Ok(actions)
            }
            Shown::Windows { batch, rows, padded, padding } => {
                let mut actions = vec![0.0; batch * action_width];
                // What is cut off must not affect what follows.
                let left_out = if padding == LeftPadding::Cut { padded * width } else { 0 };
                let windows: Vec<&[f32]> = rows.chunks_exact(rows.len() / batch).map(|window| &window[left_out..]).collect();
                let mut sessions = self.model.init_state(batch)?;
                self.model.prefill_values(&windows, &mut sessions, &mut actions, &mut self.workspace)?;
                Ok(actions)
            }
        }
    }
}
