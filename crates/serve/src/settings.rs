//! Settings and limits of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Where a server listens, and its limits. Each model has its own sessions, queue and cache.
///
/// More settings may be added: start from the defaults and change some.
///
/// ```
/// let mut settings = minrnn_serve::Settings::default();
/// settings.address.set_port(0);
/// settings.max_tokens = 100;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Where it listens; port 0 takes one that is free. Default 127.0.0.1:8080, which other machines cannot reach.
    pub address: SocketAddr,
    /// What clients may call this machine beside `localhost` and its loopback addresses; used when no key is needed and the server listens only on this
    /// machine. Default none.
    pub host_name: Option<String>,
    /// The key that clients must send (`Authorization: Bearer …`); without one, the default, everybody may send requests.
    pub api_key: Option<String>,
    /// Most texts of a model that are read or continued at once. Default 64.
    pub sessions: usize,
    /// Most prompts of a model that may wait for a session, or tables for their turn; more are refused. Default 256.
    pub queue: usize,
    /// Most tokens generated for one text. Default 4096.
    pub max_tokens: usize,
    /// Most bytes of a request. Default 4 MiB.
    pub max_request: usize,
    /// Most bytes that the sessions of a model take together, each counted at its largest: prompts wait for others to end, and one that needs more by
    /// itself is refused. Default 1 GiB.
    pub session_bytes: u64,
    /// Most bytes of the states that a model keeps of texts it has read, and again as many for tokens of texts that `previous_response_id` names.
    /// Default 256 MiB.
    pub cache_bytes: usize,
    /// Seed of the first request that names none; each such request counts up by one. Default 0.
    pub seed: u64,
    /// How long a client may take to send the head of a request, and again the rest of it; how long it may read nothing of an answer; and how long a
    /// connection may be idle. Default 30 s.
    pub patience: Duration,
    /// How long requests may go on after the server was asked to stop. Default 30 s.
    pub drain: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            host_name: None,
            api_key: None,
            sessions: 64,
            queue: 256,
            max_tokens: 4096,
            max_request: 4 << 20,
            session_bytes: 1 << 30,
            cache_bytes: 256 << 20,
            seed: 0,
            patience: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}
