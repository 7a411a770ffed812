//! A prompt to be continued, and what comes back of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use minrnn_stream::Continuation;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::logprobs::Logprob;

/// How far a client may be behind: events of each text of its request, beyond which the texts wait.
const BEHIND: usize = 512;
/// Texts of a request that count for that.
const TEXTS: usize = 64;

/// One prompt and its continuations.
#[derive(Debug)]
pub(crate) struct Job {
    /// At least one token.
    pub prompt: Arc<[u32]>,
    /// One for each continuation.
    pub texts: Vec<Continuation>,
    /// The number of the first continuation in its request; the others count on.
    pub first_choice: usize,
    /// Tokens generated for each.
    pub max_tokens: usize,
    /// Bytes that the session of each will take at most.
    pub session_bytes: u64,
    /// How many of the likeliest tokens are told beside each one, if any are.
    pub logprobs: Option<usize>,
    /// Whether they are told of the prompt's tokens too.
    pub of_prompt: bool,
    pub client: Client,
    pub arrived: Instant,
}

/// What is said of a job. The channel ends before all continuations have, where the model's thread did.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// The prompt has been read; its first token has no probability. All its continuations share those of the others.
    Read { choice: usize, cached: usize, logprobs: Arc<[Logprob]> },
    /// A token was generated.
    Token(Generated),
    /// It cannot go on.
    Failed { sentence: String },
}

/// One token of one continuation.
#[derive(Debug, PartialEq)]
pub(crate) struct Generated {
    pub choice: usize,
    /// None where none was asked for and the text only ends.
    pub token: Option<u32>,
    /// The text it completed.
    pub text: String,
    pub logprob: Option<Logprob>,
    pub ended: Option<Ended>,
}

/// Why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// A stop string came.
    Stop,
    /// It has as many tokens as were asked for.
    Length,
}

/// Whoever waits for what is said of a request, as the model's thread knows them: it tells them, and never waits for them.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    events: UnboundedSender<Event>,
    unheard: Arc<AtomicUsize>,
    /// Events that a client may be behind.
    most: usize,
}

/// The events of a request, as they come.
#[derive(Debug)]
pub(crate) struct Events {
    receiver: UnboundedReceiver<Event>,
    unheard: Arc<AtomicUsize>,
}

/// Both ends of a request for so many texts.
pub(crate) fn channel(texts: usize) -> (Client, Events) {
    let ((sender, receiver), unheard) = (unbounded_channel(), Arc::new(AtomicUsize::new(0)));
    (Client { events: sender, unheard: unheard.clone(), most: BEHIND * texts.clamp(1, TEXTS) }, Events { receiver, unheard })
}

impl Client {
    /// Whoever went away is forgotten before the next step.
    pub fn tell(&self, event: Event) {
        self.unheard.fetch_add(1, Relaxed);
        let _ = self.events.send(event);
    }

    /// Whether nobody waits any more.
    pub fn has_left(&self) -> bool {
        self.events.is_closed()
    }

    /// Whether so much is unheard that its texts are to wait.
    pub fn is_behind(&self) -> bool {
        self.unheard.load(Relaxed) >= self.most
    }
}

impl Events {
    /// The next event, once there is one; none where nobody is left to say anything.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await.inspect(|_| self.heard())
    }

    /// The next event, if it is there.
    pub fn next_there(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok().inspect(|_| self.heard())
    }

    fn heard(&self) {
        self.unheard.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_behind_until_it_has_heard_enough() {
        let event = || Event::Failed { sentence: String::new() };
        let (client, mut events) = channel(2);
        (0..2 * BEHIND - 1).for_each(|_| client.tell(event()));
        assert!(!client.is_behind());
        client.tell(event());
        assert!(client.is_behind());
        assert_eq!(events.next_there(), Some(event()));
        assert!(!client.is_behind() && !client.has_left());
        drop(events);
        assert!(client.has_left());
        // However many texts a request has, its client may be no further behind than that of a request for TEXTS.
        assert_eq!((channel(1 << 20).0.most, channel(0).0.most), (BEHIND * TEXTS, BEHIND));
    }
}
