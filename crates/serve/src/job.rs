//! A prompt to be continued, and the events that come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use minrnn_stream::Continuation;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::logprobs::Logprob;

/// How far a client may be behind, in events for each text of its request, before the texts wait.
const BEHIND: usize = 512;
/// Most texts of a request that count for this limit.
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
    /// How many of the likeliest tokens are reported for each one, if any.
    pub logprobs: Option<usize>,
    /// Whether they are reported for the prompt's tokens too.
    pub of_prompt: bool,
    pub client: Client,
    pub arrived: Instant,
}

/// An event of a job. If the model's thread ends, so does the channel, before all continuations have.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// The prompt has been read; its first token has no probability. All its continuations share those of the others.
    Read { choice: usize, cached: usize, logprobs: Arc<[Logprob]> },
    /// A token was generated.
    Token(Generated),
    /// The job cannot go on.
    Failed { sentence: String },
}

/// One token of one continuation.
#[derive(Debug, PartialEq)]
pub(crate) struct Generated {
    pub choice: usize,
    /// None if no tokens were asked for and the text only ends.
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

/// The client of a request as the model's thread sees it: events are sent to it without ever waiting for it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    events: UnboundedSender<Event>,
    unheard: Arc<AtomicUsize>,
    /// How many events the client may be behind.
    most: usize,
}

/// The events of a request, as they come.
#[derive(Debug)]
pub(crate) struct Events {
    receiver: UnboundedReceiver<Event>,
    unheard: Arc<AtomicUsize>,
}

/// Both ends of the channel of a request for `texts` texts.
pub(crate) fn channel(texts: usize) -> (Client, Events) {
    let ((sender, receiver), unheard) = (unbounded_channel(), Arc::new(AtomicUsize::new(0)));
    (Client { events: sender, unheard: unheard.clone(), most: BEHIND * texts.clamp(1, TEXTS) }, Events { receiver, unheard })
}

impl Client {
    /// Sends an event; a client that has left is removed before the next step.
    pub fn tell(&self, event: Event) {
        self.unheard.fetch_add(1, Relaxed);
        let _ = self.events.send(event);
    }

    /// Whether nobody waits any more.
    pub fn has_left(&self) -> bool {
        self.events.is_closed()
    }

    /// Whether so many events are unread that its texts must wait.
    pub fn is_behind(&self) -> bool {
        self.unheard.load(Relaxed) >= self.most
    }
}

impl Events {
    /// Waits for the next event; none once nobody is left to send one.
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
