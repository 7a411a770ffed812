//! How surprising rows are, by what was forecast for them.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::data::table::{Row, TableTask};
use minrnn::deployed::{Deployed, Groups, exceeds};
use minrnn_stream::expect_surprise;

use super::Args;
use crate::cells::{Cell, write_cells};
use crate::failure::WrongInput;
use crate::free_name::free_name;
use crate::say::say;
use crate::share::{SHARE, expect_share};
use crate::{input, scored};

/// Judges rows by a threshold.
pub struct Scoring {
    /// The surprise above which a row is marked; none if there was nothing to compare with.
    threshold: Option<f64>,
}

/// How surprising a row is, in nats, and whether it is marked, where these are known.
#[derive(Clone, Copy)]
pub struct Judged {
    pub surprise: Option<f64>,
    is_marked: Option<bool>,
}

impl Scoring {
    /// As the arguments ask; none if they do not ask for it. Says what rows are compared with.
    pub fn new(args: &Args, deployed: &Deployed, task: &TableTask) -> anyhow::Result<Option<Self>> {
        if !args.surprise {
            return Ok(None);
        }
        let share = expect_share(args.threshold.unwrap_or(SHARE))?;
        let refused = |sentence: String| WrongInput(format!("'{}': {sentence}", args.model.display()));
        let forecaster = expect_surprise(task).map_err(|error| refused(error.to_string()))?;
        // Without the values of what is forecast, no row could be judged.
        forecaster.target_columns().map_err(|error| refused(error.to_string()))?;
        input::expect_apart(Path::new("-"), "the rows", args.calibrate.as_deref())?;
        let usual = scored::usual_rows(args.calibrate.as_deref(), deployed, forecaster, &AtomicBool::new(false))?;
        let usual = usual.expect("nothing raises the flag");
        let (threshold, told) = scored::threshold(&usual, share, "--threshold", "with --calibrate FILE")?;
        say(told);
        Ok(Some(Self { threshold }))
    }

    /// Judges `row` before it is read.
    pub fn judge(&self, groups: &Groups<'_>, row: &Row<'_>) -> minrnn::Result<Judged> {
        let surprise = groups.surprise(row.group, row.values)?;
        Ok(Judged { surprise, is_marked: exceeds(surprise, self.threshold) })
    }
}

impl Judged {
    /// The names of its columns, which are others than that of the sequences. Says which are called otherwise because of it.
    pub fn columns(group: Option<&str>) -> [String; 2] {
        let taken: Vec<String> = group.into_iter().map(str::to_owned).collect();
        ["surprise", "anomaly"].map(|name| {
            let free = free_name(name.to_owned(), "_scored", &taken);
            if free != name {
                say(format_args!("the sequences are named by a column '{name}': what is written under this name is called '{free}'"));
            }
            free
        })
    }

    /// Appends its cells to a line of CSV.
    pub fn write_cells(self, line: &mut String) {
        write_cells(&[Cell::Rounded(self.surprise.unwrap_or(f64::NAN)), Cell::Mark(self.is_marked)], line);
    }

    /// Appends its fields to an object in JSON.
    pub fn write_fields(self, object: &mut String) {
        let surprise = self.surprise.map_or("null".to_owned(), |surprise| format!("{surprise:.6}"));
        let is_marked = self.is_marked.map_or("null", |is_marked| if is_marked { "true" } else { "false" });
        let _ = write!(object, "\"surprise\":{surprise},\"anomaly\":{is_marked}");
    }
}
