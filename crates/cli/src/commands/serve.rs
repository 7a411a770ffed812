//! `minrnn serve`: trained models of text and of tables over HTTP.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use minrnn::data::table::{TableLimit, TableSource, TableTask, notes, read_series_from};
use minrnn::deployed::{self, Deployed};
use minrnn::{Error, Needed};
use minrnn_model::read_text;
use minrnn_serve::{Accept, Predictions, Predictor, ServedModel, ServedTable, Server, Settings, Unpredicted};
use rayon::ThreadPool;
use tempfile::NamedTempFile;

use crate::exit::ExitCode;
use crate::failure::WrongInput;
use crate::interrupt;
use crate::predicted::Predicted;
use crate::say::say;
use crate::session_size::session_size;
use crate::threads::Threads;

const MAX_KEY_FILE: u64 = 4096;
const MIB: usize = 1 << 20;
/// How a client gives the rows to come.
const SEND_ROWS_TO_COME: &str = "; send both tables as texts in JSON, {\"data\": …, \"future\": …}";

#[derive(clap::Args)]
pub struct Args {
    /// Run directories, checkpoints or packed models of text or tables; NAME=PATH gives one a name other than its file's
    #[arg(value_name = "[NAME=]RUN|FILE", required = true)]
    models: Vec<String>,
    /// Address or host name to listen on; 0.0.0.0 for all addresses of this machine
    #[arg(long, value_name = "ADDRESS", default_value_t = Settings::default().address.ip().to_string())]
    host: String,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 8080)]
    port: u16,
    /// File with the key that clients must send (Authorization: Bearer KEY) [default: no key is needed]
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Maximum number of texts that a model reads or continues at once
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().sessions)]
    sessions: usize,
    /// Maximum number of prompts or tables that wait for a model; more are refused
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().queue)]
    queue: usize,
    /// Maximum number of tokens to generate for one text
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().max_tokens)]
    max_tokens: usize,
    /// Maximum size of a request in MiB
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().max_request / MIB)]
    max_request: usize,
    /// Maximum memory in MiB for all sessions of a model, each at its full length; prompts wait for room
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().session_bytes as usize / MIB)]
    session_memory: usize,
    /// Memory in MiB for the states of earlier texts, for prompts that begin like them; 0 keeps none
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().cache_bytes / MIB)]
    cache: usize,
    /// Seed of the first request without one; it increases by one with each such request
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().seed)]
    seed: u64,
    /// Seconds that a client may take to send a request or leave an answer unread, and that a connection may be idle
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().patience.as_secs())]
    patience: u64,
    /// Seconds that open requests may take after Ctrl-C or SIGTERM; a second signal ends them
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Settings::default().drain.as_secs())]
    drain: u64,
    #[command(flatten)]
    threads: Threads,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = settings(&args)?;
    let limit = TableLimit::of_text(settings.max_request);
    // Before this a signal ends the process at once, since the file of a key may be a pipe that nobody writes to.
    let stop = interrupt::stop_flag()?;
    let (mut models, mut tables, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for given in &args.models {
        let (name, deployed) = load(given)?;
        sizes.push(described(&name, &deployed));
        match deployed {
            Deployed { table: Some(_), .. } => tables.push(served_table(name, deployed, limit, args.threads.pool()?)),
            Deployed { model, tokenizer: Some(tokenizer), .. } => models.push(ServedModel { name, model, tokenizer }),
            Deployed { path, .. } => {
                let sentence = "was trained neither on text nor on a table; see minrnn eval and minrnn rollout";
                return Err(WrongInput(format!("the model in '{}' {sentence}", path.display())).into());
            }
        }
    }
    let is_open = settings.api_key.is_none() && !settings.address.ip().to_canonical().is_loopback();
    let server = Server::bind(models, tables, settings, args.threads.pool()?)?;
    sizes.iter().for_each(say);
    if is_open {
        say("anyone who can reach this machine may send requests; --api-key-file FILE demands the key in it");
    }
    say(format_args!("listening on http://{}", server.address()));
    let mut was_told = false;
    server.run(move || {
        let stopped = stop.load(Ordering::Relaxed);
        if stopped && !was_told {
            was_told = true;
            say("stopping; open requests may finish");
        }
        stopped
    })?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    let Args { port, sessions, queue, max_tokens, max_request, session_memory, cache, seed, patience, drain, .. } = *args;
    let bytes = |mib: usize| mib.saturating_mul(MIB);
    let mut settings = Settings::default();
    settings.address = address(&args.host, port)?;
    settings.host_name = Some(args.host.clone()).filter(|host| host.parse::<IpAddr>().is_err());
    settings.api_key = args.api_key_file.as_deref().map(api_key).transpose()?;
    settings.sessions = sessions;
    settings.queue = queue;
    settings.max_tokens = max_tokens;
    settings.max_request = bytes(max_request);
    settings.session_bytes = bytes(session_memory) as u64;
    settings.cache_bytes = bytes(cache);
    settings.seed = seed;
    settings.patience = Duration::from_secs(patience);
    settings.drain = Duration::from_secs(drain);
    Ok(settings)
}

/// The address of `host`, an address or a name: of a name with several addresses, the first of IPv4, which every client tries.
fn address(host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let refused = |why: String| WrongInput(format!("--host '{host}': expected an address of this machine or a name of one; {why}"));
    // Short forms of addresses, such as 0, resolve to addresses that nobody expects.
    if host.parse::<IpAddr>().is_err() && host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(refused("it is not a complete address".to_owned()).into());
    }
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|error| refused(error.to_string()))?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    Ok(*first.ok_or_else(|| refused("it has no address".to_owned()))?)
}

fn api_key(path: &Path) -> anyhow::Result<String> {
    let text = read_text(path, MAX_KEY_FILE).map_err(minrnn::Error::from)?;
    let key = text.trim();
    if key.is_empty() || key.chars().any(|c| !c.is_ascii_graphic()) {
        let sentence = "expected a key of visible ASCII characters and nothing else";
        return Err(WrongInput(format!("'{}': {sentence}", path.display())).into());
    }
    Ok(key.to_owned())
}

/// The model that `given` stands for, and its name.
fn load(given: &str) -> anyhow::Result<(String, Deployed)> {
    // A path may contain the sign too.
    let (name, path) = match given.split_once('=') {
        Some((name, path)) if !name.is_empty() && !Path::new(given).exists() => (Some(name), Path::new(path)),
        _ => (None, Path::new(given)),
    };
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let name = name.map_or_else(|| stem.unwrap_or(path.as_os_str()).to_string_lossy().into_owned(), ToOwned::to_owned);
    Ok((name, Deployed::load(path)?))
}

fn described(name: &str, Deployed { model, table, .. }: &Deployed) -> String {
    let session = session_size(model, table.as_ref());
    format!("{name}: {} of {} parameters, a session takes {session}", model.config().mixer_names(), model.parameters())
}

fn served_table(name: String, deployed: Deployed, limit: TableLimit, pool: Arc<ThreadPool>) -> ServedTable {
    let about = match deployed.table.as_ref() {
        Some(TableTask::Classify(task)) => format!("the class '{}' of each '{}'", task.target, task.group),
        Some(TableTask::Regress(task)) => format!("the number '{}' of each '{}'", task.target, task.group),
        Some(TableTask::Forecast(task)) => format!("the next {} values of '{}'", task.horizon, task.target.join("', '")),
        None => String::new(),
    };
    ServedTable { name, about, predictor: Box::new(Tables { deployed, limit, pool }) }
}

/// A model of tables, as the server calls it.
struct Tables {
    deployed: Deployed,
    /// How much of a table is read: a request may hold its rows in far fewer bytes.
    limit: TableLimit,
    /// Its own pool, so that a long table does not hold up texts.
    pool: Arc<ThreadPool>,
}

impl Predictor for Tables {
    fn predict(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unpredicted> {
        let (predicted, notes) = self.pool.install(|| self.predicted(table, future, stop))?;
        let text = match accept {
            Accept::Csv => predicted.to_csv(),
            Accept::Json => predicted.into_json().to_string(),
        };
        Ok(Predictions { text, notes })
    }
}

impl Tables {
    fn limited<'a>(&self, table: &'a NamedTempFile) -> TableSource<'a> {
        TableSource::Limited(table.path(), self.limit)
    }

    /// The predictions, and notes on them.
    fn predicted(&self, table: &[u8], future: Option<&[u8]>, stop: &AtomicBool) -> Result<(Predicted, Vec<String>), Unpredicted> {
        let (table, future) = (kept(table)?, future.map(kept).transpose()?);
        // The client does not know their names here.
        let unnamed = |told: String, file: &NamedTempFile, what: &str| told.replace(&format!("'{}'", file.path().display()), what);
        let told = |error: Error| {
            // The table is in a file of the server, and so may its values be: a failure there is not the client's, who need not know where it is.
            if matches!(error, Error::Io { .. }) {
                return not_kept(&error);
            }
            let how = if let Error::Needed { what: Needed::RowsToCome, .. } = error { SEND_ROWS_TO_COME } else { "" };
            let sentence = unnamed(error.to_string() + how, &table, "the table");
            let sentence = future.iter().fold(sentence, |sentence, future| unnamed(sentence, future, "the rows to come"));
            Unpredicted { is_wrong_input: error.is_wrong_input(), sentence }
        };
        let Deployed { model, table: Some(task), .. } = &self.deployed else {
            return Err(failed("the model is not one of tables".to_owned()));
        };
        let read = read_series_from(task, self.limited(&table), future.as_ref().map(|future| self.limited(future)));
        let (series, unseen) = read.map_err(told)?;
        // Once nobody waits, a long table is not even measured.
        if stop.load(Ordering::Relaxed) {
            return Err(nobody_waits());
        }
        deployed::prediction_memory(model.config(), &series).and_then(|needed| needed.expect_room(None)).map_err(told)?;
        let predictions = deployed::predict(model, task, &series, stop).map_err(told)?;
        let predictions = predictions.ok_or_else(nobody_waits)?;
        Ok((Predicted::of(task, &series, &predictions), notes(task, &series, &unseen)))
    }
}

/// A temporary file of `table`, since readers of tables read files.
fn kept(table: &[u8]) -> Result<NamedTempFile, Unpredicted> {
    let file = NamedTempFile::new().and_then(|mut file| file.write_all(table).map(|()| file));
    file.map_err(|error| not_kept(&error))
}

/// The failure to keep a table while it is read; only the server's own messages say why.
fn not_kept(error: &dyn std::error::Error) -> Unpredicted {
    say(format_args!("a table that was sent could not be kept while it was read: {error}"));
    failed("the server could not keep the table while it was read; its own messages say why".to_owned())
}

fn nobody_waits() -> Unpredicted {
    failed("nobody waits for the predictions any more".to_owned())
}

fn failed(sentence: String) -> Unpredicted {
    Unpredicted { sentence, is_wrong_input: false }
}
