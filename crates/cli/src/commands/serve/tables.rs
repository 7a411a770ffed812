//! Models of tables, as the server calls them.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::data::table::{ForecastRows, Forecaster, TableLimit, TableSource, TableTask, notes, read_series_from};
use minrnn::deployed::{self, Deployed, Usual, exceeds, score_rows, scoring_memory};
use minrnn::memory::Estimate;
use minrnn::{Error, Needed};
use minrnn_serve::{Accept, Predictions, Scores, ServedTable, TableModel, Unanswered};
use minrnn_stream::expect_surprise;
use rayon::ThreadPool;
use tempfile::NamedTempFile;

use crate::cells::Written;
use crate::failure::WrongInput;
use crate::predicted::{self, Predicted};
use crate::say::say;
use crate::scored::{self, Columns};

/// How a client gives the rows to come.
const SEND_ROWS_TO_COME: &str = "; send both tables as texts in JSON, {\"data\": …, \"future\": …}";
/// What the table of usual rows is called in messages, and how a client gives it.
const USUAL: &str = "calibrate";
const SEND_USUAL: &str = "as \"calibrate\" beside \"data\" in JSON";
/// What the share of usual rows that is not marked is called in messages.
const THRESHOLD: &str = "threshold";

/// The model of tables in `deployed`, of which no more than `limit` is read; it computes in `pool`.
pub fn served_table(name: String, deployed: Deployed, limit: TableLimit, pool: Arc<ThreadPool>) -> ServedTable {
    let about = match deployed.table.as_ref() {
        Some(TableTask::Classify(task)) => format!("the class '{}' of each '{}'", task.target, task.group),
        Some(TableTask::Regress(task)) => format!("the number '{}' of each '{}'", task.target, task.group),
        Some(TableTask::Forecast(task)) => format!("the next {} values of '{}'", task.horizon, task.target.join("', '")),
        None => String::new(),
    };
    ServedTable { name, about, model: Box::new(Tables { deployed, limit, pool }) }
}

/// A model of tables.
struct Tables {
    deployed: Deployed,
    /// How much of a table is read: a request may hold its rows in far fewer bytes.
    limit: TableLimit,
    /// Its own pool, so that a long table does not hold up texts.
    pool: Arc<ThreadPool>,
}

impl TableModel for Tables {
    fn predict(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unanswered> {
        self.pool.install(|| self.predicted(table, future, accept, stop))
    }

    fn score(&self, table: &[u8], usual: Option<&[u8]>, share: f64, accept: Accept, stop: &AtomicBool) -> Result<Scores, Unanswered> {
        self.pool.install(|| self.scored(table, usual, share, accept, stop))
    }
}

impl Tables {
    fn task(&self) -> Result<&TableTask, Unanswered> {
        self.deployed.table.as_ref().ok_or_else(|| failed("the model is not one of tables".to_owned()))
    }

    /// The predictions, and notes on them.
    fn predicted(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unanswered> {
        let (model, task) = (&self.deployed.model, self.task()?);
        let sent = Sent::kept(table, future, "the rows to come")?;
        let told = |error: Error| sent.unanswered(&error);
        let future = sent.other.as_ref().map(|future| future.limited(self.limit));
        let (series, unseen) = read_series_from(task, sent.table.limited(self.limit), future).map_err(told)?;
        expect_wanted(stop)?;
        predicted::expect_room(task, &series, self.limit).map_err(told)?;
        deployed::prediction_memory(model.config(), task, &series).and_then(expect_room).map_err(told)?;
        let predictions = deployed::predict(model, task, &series, stop).map_err(told)?.ok_or_else(nobody_waits)?;
        let text = Predicted::of(task, &series, &predictions).written(accept, stop).ok_or_else(nobody_waits)?;
        Ok(Predictions { text, notes: notes(task, &series, &unseen) })
    }

    /// The rows of `table` with their surprise; those more surprising than a share `share` of usual rows are marked.
    fn scored(&self, table: &[u8], usual: Option<&[u8]>, share: f64, accept: Accept, stop: &AtomicBool) -> Result<Scores, Unanswered> {
        let (model, forecaster) = (&self.deployed.model, expect_surprise(self.task()?));
        let forecaster = forecaster.map_err(|error| wrong(WrongInput(error.to_string())))?;
        let sent = Sent::kept(table, usual, USUAL)?;
        let told = |error: Error| sent.unanswered(&error);
        let (usual, of_usual) = match &sent.other {
            None => (Usual::from(self.deployed.surprise.clone()), Vec::new()),
            Some(usual) => {
                let rows = self.rows(usual, forecaster, stop, &told)?;
                Usual::of_rows(USUAL, &rows, model, stop).map_err(told)?.ok_or_else(nobody_waits)?
            }
        };
        let (threshold, reference) = scored::threshold(&usual, share, THRESHOLD, SEND_USUAL).map_err(wrong)?;
        let rows = self.rows(&sent.table, forecaster, stop, &told)?;
        let columns = Columns::new(forecaster, rows.series());
        // The threshold comes first, as beside CSV there is room for a few notes alone.
        let notes = [vec![reference], of_usual, rows.notes(), columns.notes.clone()].concat();
        let mut written = Written::new(columns.names.clone(), accept);
        let is_whole = score_rows(model, &rows, stop, |at, step, row| {
            written.push(columns.cells(at, step, &row, exceeds(row.surprise, threshold)));
            Ok(())
        });
        if !is_whole.map_err(told)? {
            return Err(nobody_waits());
        }
        Ok(Scores { text: written.end(), threshold, notes })
    }

    /// The rows of `kept`, for which there is room.
    fn rows(
        &self,
        kept: &Kept,
        forecaster: &Forecaster,
        stop: &AtomicBool,
        told: &impl Fn(Error) -> Unanswered,
    ) -> Result<ForecastRows, Unanswered> {
        let rows = ForecastRows::read(kept.limited(self.limit), forecaster).map_err(told)?;
        expect_wanted(stop)?;
        scoring_memory(self.deployed.model.config(), &rows).and_then(expect_room).map_err(told)?;
        Ok(rows)
    }
}

/// The tables of a request.
struct Sent {
    table: Kept,
    other: Option<Kept>,
}

impl Sent {
    /// Keeps `table`, and `other`, which is called `name` in messages.
    fn kept(table: &[u8], other: Option<&[u8]>, name: &'static str) -> Result<Self, Unanswered> {
        let other = other.map(|other| Kept::new(other, name)).transpose()?;
        Ok(Self { table: Kept::new(table, "the table")?, other })
    }

    /// What a client is told of `error`.
    fn unanswered(&self, error: &Error) -> Unanswered {
        // The table is in a file of the server, and so may its values be: a failure there is not the client's, who need not know where it is.
        if matches!(error, Error::Io { .. }) {
            return not_kept(error);
        }
        let how = if let Error::Needed { what: Needed::RowsToCome, .. } = error { SEND_ROWS_TO_COME } else { "" };
        let tables = [Some(&self.table), self.other.as_ref()].into_iter().flatten();
        let sentence = tables.fold(format!("{error}{how}"), |sentence, table| table.named_in(&sentence));
        Unanswered { is_wrong_input: error.is_wrong_input(), sentence }
    }
}

/// A table that was sent, in a temporary file, since readers of tables read files.
struct Kept {
    file: NamedTempFile,
    /// What it is called in messages: the client does not know the name of the file.
    name: &'static str,
}

impl Kept {
    fn new(table: &[u8], name: &'static str) -> Result<Self, Unanswered> {
        let file = NamedTempFile::new().and_then(|mut file| file.write_all(table).map(|()| file));
        Ok(Self { file: file.map_err(|error| not_kept(&error))?, name })
    }

    fn limited(&self, limit: TableLimit) -> TableSource<'_> {
        TableSource::Limited(self.file.path(), limit)
    }

    /// `sentence` with its name in place of the file's.
    fn named_in(&self, sentence: &str) -> String {
        sentence.replace(&format!("'{}'", self.file.path().display()), self.name)
    }
}

fn expect_room(needed: Estimate) -> minrnn::Result<()> {
    needed.expect_room(None)
}

/// Fails once nobody waits: a long table is then not even measured.
fn expect_wanted(stop: &AtomicBool) -> Result<(), Unanswered> {
    if stop.load(Ordering::Relaxed) { Err(nobody_waits()) } else { Ok(()) }
}

/// The failure to keep a table while it is read; only the server's own messages say why.
fn not_kept(error: &dyn std::error::Error) -> Unanswered {
    say(format_args!("a table that was sent could not be kept while it was read: {error}"));
    failed("the server could not keep the table while it was read; its own messages say why".to_owned())
}

fn nobody_waits() -> Unanswered {
    failed("nobody waits for the answer any more".to_owned())
}

fn failed(sentence: String) -> Unanswered {
    Unanswered { sentence, is_wrong_input: false }
}

fn wrong(WrongInput(sentence): WrongInput) -> Unanswered {
    Unanswered { sentence, is_wrong_input: true }
}
