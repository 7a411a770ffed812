//! What can keep a server from listening or running.

use std::net::SocketAddr;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server cannot start or go on.
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
        match self {
            Self::Input(_) | Self::Listen { .. } => true,
            Self::Start(_) | Self::Run(_) => false,
            Self::Model(error) => error.is_wrong_input(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_cannot_be_served_is_wrong_input_as_it_is_of_other_commands() {
        let of = |error: minrnn_stream::Error| Error::from(error).is_wrong_input();
        assert!(of(minrnn_model::Error::Packed("is damaged".to_owned()).into()));
        assert!(of(minrnn_stream::Error::Kind("the model does not read text")));
        assert!(!of(minrnn_stream::Error::Memory("memory cannot hold 3 sessions".to_owned())));
    }
}
