//! A server: its models, where it listens, and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rayon::ThreadPool;

use crate::api::App;
use crate::connections;
use crate::error::{Error, Result};
use crate::served::{ServedModel, ServedTable};
use crate::settings::Settings;

/// How often to check whether a stop was asked for.
const GLANCE: Duration = Duration::from_millis(50);

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
    /// Starts listening, and starts a thread for each of `models`; they share the threads of `pool`.
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

    /// Answers until `is_stopped`, which is called periodically, returns true. New requests are then refused; those under way may finish, for
    /// [`Settings::drain`] at most.
    ///
    /// # Errors
    /// When the system no longer lets it listen.
    pub fn run(self, mut is_stopped: impl FnMut() -> bool + Send + 'static) -> Result<()> {
        let Self { app, runtime, listener, patience, drain, .. } = self;
        let ended = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Run)?;
            let (stop, mut asked) = tokio::sync::watch::channel(false);
            let stopped = async move {
                while !is_stopped() {
                    tokio::time::sleep(GLANCE).await;
                }
                let _ = stop.send(true);
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
        // Another kind may have a class for each token, and one that compares pairs remembers the previous sequence in a restarted session.
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
