//! A server: its models, where it listens, and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use minrnn_model::Tokenizer;
use minrnn_stream::Model;
use rayon::ThreadPool;

use crate::api::App;
use crate::connections;
use crate::settings::Settings;

/// How often it is looked whether a stop was asked for.
const GLANCE: Duration = Duration::from_millis(50);

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Models or settings that cannot be served.
    #[error("{0}")]
    Input(String),
    /// The address is taken, or not one of this machine.
    #[error("could not listen on {address}; choose another port, or an address of this machine")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("could not start a thread: {0}")]
    Start(std::io::Error),
    /// A model whose sessions cannot be made.
    #[error(transparent)]
    Model(#[from] minrnn_stream::Error),
    /// The connection to the network ended.
    #[error("could not go on listening: {0}")]
    Run(std::io::Error),
}

impl Error {
    /// Whether what was given is at fault, and not the machine.
    pub fn is_wrong_input(&self) -> bool {
        matches!(self, Self::Input(_) | Self::Listen { .. })
    }
}

/// A model of text and the name that requests call it by.
#[derive(Debug)]
pub struct ServedModel {
    /// Its name.
    pub name: String,
    /// The model.
    pub model: Model,
    /// Its tokens.
    pub tokenizer: Tokenizer,
}

/// A model of tables, which predicts for those of requests, and the name that they call it by.
pub struct ServedTable {
    /// Its name.
    pub name: String,
    /// What it says of itself in the list of models.
    pub about: String,
    /// What predicts.
    pub predictor: Box<dyn Predictor>,
}

/// What is predicted for the sequences of a table.
pub trait Predictor: Send + Sync {
    /// The predictions for `table`, the bytes of a file, as CSV, or as a value of JSON where that is wanted. `future` are those of a file with the rows to
    /// come, where they were sent. `stop` is raised when nobody waits any more; what is given then does not matter. It is called on a thread of its own,
    /// one table at a time.
    ///
    /// # Errors
    /// A sentence, and whether the table is at fault.
    fn predict(&self, table: &[u8], future: Option<&[u8]>, json: bool, stop: &AtomicBool) -> Result<Predictions, Unpredicted>;
}

/// What was predicted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predictions {
    /// The predictions, as CSV or JSON.
    pub text: String,
    /// What whoever reads them should know of the table, a sentence each.
    pub notes: Vec<String>,
}

/// Why nothing was predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpredicted {
    /// What is wrong.
    pub sentence: String,
    /// Whether it is wrong with the table.
    pub is_wrong_input: bool,
}

/// A server that listens already and answers once it [runs](Server::run).
pub struct Server {
    app: Arc<App>,
    runtime: tokio::runtime::Runtime,
    listener: std::net::TcpListener,
    address: SocketAddr,
    patience: Duration,
    drain: Duration,
}

impl Server {
    /// Listens, and starts a thread for each of `models`, which share the threads of `pool`.
    ///
    /// # Errors
    /// When there is no model, one of `models` does not read text, two have one name, a limit is 0, or the address cannot be listened on.
    pub fn bind(models: Vec<ServedModel>, tables: Vec<ServedTable>, settings: Settings, pool: Arc<ThreadPool>) -> Result<Self> {
        check(&models, &tables, &settings)?;
        let address = settings.address;
        let refused = |source| Error::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(Error::Start)?;
        let Settings { patience, drain, .. } = settings;
        let app = Arc::new(App::new(models, tables, settings, address, &pool)?);
        Ok(Self { app, runtime, listener, address, patience, drain })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `is_stopped` says so, which is asked again and again. Nothing new is taken then; what is under way may end, for
    /// [`Settings::drain`] at most.
    ///
    /// # Errors
    /// When the system no longer lets it listen.
    pub fn run(self, mut is_stopped: impl FnMut() -> bool + Send + 'static) -> Result<()> {
        let Self { app, runtime, listener, patience, drain, .. } = self;
        let ended = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Run)?;
            let (told, mut asked) = tokio::sync::watch::channel(false);
            let stopped = async move {
                while !is_stopped() {
                    tokio::time::sleep(GLANCE).await;
                }
                let _ = told.send(true);
            };
            let serving = connections::serve(listener, app.router(), patience, stopped);
            let too_late = async move {
                let _ = asked.wait_for(|&asked| asked).await;
                tokio::time::sleep(drain).await;
            };
            tokio::select! {
                () = serving => {}
                () = too_late => {}
            }
            Ok(())
        });
        runtime.shutdown_background();
        ended
    }
}

fn check(models: &[ServedModel], tables: &[ServedTable], settings: &Settings) -> Result<()> {
    let refused = |sentence: String| Err(Error::Input(sentence));
    let names: Vec<&str> = models.iter().map(|served| &*served.name).chain(tables.iter().map(|served| &*served.name)).collect();
    if names.is_empty() {
        return refused("there is no model to serve; give at least one".to_owned());
    }
    if let Some((_, name)) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        return refused(format!("two models are called '{name}'; give one of them another name"));
    }
    for ServedModel { name, model, tokenizer } in models {
        let (found, known) = (tokenizer.vocab_size(), model.vocab_size());
        // Another may have a class for each token, and one that compares pairs remembers the sequence before in a session begun anew.
        if !model.config().is_language_model() || model.config().pair_head || found > known {
            return refused(format!(
                "the model '{name}' does not continue text with its {found} tokens; give one that was trained on a text"
            ));
        }
    }
    let Settings { sessions, queue, max_tokens, max_request, session_bytes, patience, .. } = settings;
    let limits = [
        ("sessions", *sessions == 0),
        ("queue", *queue == 0),
        ("max_tokens", *max_tokens == 0),
        ("max_request", *max_request == 0),
        ("the memory of the sessions of a model (session_bytes)", *session_bytes == 0),
        ("patience", patience.is_zero()),
    ];
    match limits.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((name, _)) => refused(format!("{name} must be at least 1, found 0; raise it")),
        None => Ok(()),
    }
}
