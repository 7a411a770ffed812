//! `minrnn serve`: trained models of text and of tables over HTTP.

mod tables;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use minrnn::data::table::TableLimit;
use minrnn::deployed::Deployed;
use minrnn_model::read_text;
use minrnn_serve::{ServedModel, Server, Settings};

use self::tables::served_table;
use crate::exit::ExitCode;
use crate::failure::WrongInput;
use crate::interrupt;
use crate::say::say;
use crate::session_size::session_size;
use crate::threads::Threads;

const MAX_KEY_FILE: u64 = 4096;
const MIB: usize = 1 << 20;

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
