//! What a model generates for a request, several tokens at a time: at thousands a second, a network event per token would cost more than the model.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::AT_ONCE;
use super::error::ApiError;
use crate::job::{Ended, Event, Events, Generated};
use crate::logprobs::Logprob;

/// How long further tokens are waited for, once one is there.
const GATHER: Duration = Duration::from_millis(5);

/// What is new of one text.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub choice: usize,
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<u32>,
    pub logprobs: Vec<Logprob>,
    /// Set in the first piece: how many of the prompt's tokens a cached state covered, and the probabilities of all but the first.
    pub read: Option<(usize, Arc<[Logprob]>)>,
    pub ended: Option<Ended>,
}

impl Piece {
    /// Bytes of text and number of probabilities: roughly the cost of serialising it.
    pub fn weight(&self) -> usize {
        let of_prompt = self.read.as_ref().map(|(_, logprobs)| &logprobs[..]).unwrap_or_default();
        let probabilities = |logprobs: &[Logprob]| logprobs.iter().map(|logprob| 1 + logprob.top.len()).sum::<usize>();
        self.text.len() + probabilities(of_prompt) + probabilities(&self.logprobs)
    }
}

/// The pieces of a request's texts.
pub(crate) struct Pieces {
    events: Events,
    /// Texts that have not ended.
    left: usize,
    /// The index of each text's latest piece in the batch it came in.
    places: Vec<usize>,
}

impl Pieces {
    pub fn new(events: Events, choices: usize) -> Self {
        Self { events, left: choices, places: vec![0; choices] }
    }

    /// The pieces that have come since the last call, waiting for at least one; none once all texts have ended.
    pub async fn next(&mut self) -> Result<Vec<Piece>, ApiError> {
        let mut pieces = Vec::new();
        if self.left == 0 {
            return Ok(pieces);
        }
        // A prompt that has been read is not reported by itself.
        while pieces.iter().all(|piece: &Piece| piece.tokens.is_empty() && piece.ended.is_none()) {
            let event = self.events.next().await.ok_or_else(ApiError::gone)?;
            self.add(&mut pieces, event)?;
        }
        if self.left > 0 {
            tokio::time::sleep(GATHER).await;
            while let Some(event) = self.events.next_there() {
                self.add(&mut pieces, event)?;
            }
        }
        Ok(pieces)
    }

    fn add(&mut self, pieces: &mut Vec<Piece>, event: Event) -> Result<(), ApiError> {
        match event {
            Event::Failed { sentence } => return Err(ApiError::failed(sentence)),
            Event::Read { choice, cached, logprobs } => self.piece_of(pieces, choice).read = Some((cached, logprobs)),
            Event::Token(Generated { choice, token, text, logprob, ended }) => {
                let piece = self.piece_of(pieces, choice);
                piece.text += &text;
                piece.tokens.extend(token);
                piece.logprobs.extend(logprob);
                piece.ended = ended;
                self.left -= usize::from(ended.is_some());
            }
        }
        Ok(())
    }

    /// The piece of a text in `pieces`, which is added if there is none.
    fn piece_of<'p>(&mut self, pieces: &'p mut Vec<Piece>, choice: usize) -> &'p mut Piece {
        let place = &mut self.places[choice];
        if pieces.get(*place).is_none_or(|piece| piece.choice != choice) {
            *place = pieces.len();
            pieces.push(Piece { choice, ..Piece::default() });
        }
        &mut pieces[*place]
    }
}

/// Turns pieces into the events of an interface.
pub(crate) trait Narrator: Send + 'static {
    fn begin(&mut self) -> Vec<Sent> {
        Vec::new()
    }
    fn tell(&mut self, piece: Piece) -> Vec<Sent>;
    /// Roughly the cost of serialising `piece`.
    fn weight(&self, piece: &Piece) -> usize {
        piece.weight()
    }
    fn fail(&mut self, error: &ApiError) -> Vec<Sent>;
    fn end(&mut self) -> Vec<Sent>;
}

struct Narration<N> {
    /// Present until the last event.
    narrator: Option<N>,
    pieces: Pieces,
    /// Pieces that have come and are to be sent, in order.
    news: VecDeque<Piece>,
    ready: VecDeque<Sent>,
}

impl<N: Narrator> Narration<N> {
    /// Turns the next piece into events, or waits for more pieces; `None` once everything has been sent.
    async fn go_on(&mut self) -> Option<()> {
        let mut narrator = self.narrator.take()?;
        if let Some(piece) = self.news.pop_front() {
            let (events, narrator) = if narrator.weight(&piece) > AT_ONCE {
                tokio::task::spawn_blocking(move || (narrator.tell(piece), narrator)).await.ok()?
            } else {
                (narrator.tell(piece), narrator)
            };
            self.ready.extend(events);
            self.narrator = Some(narrator);
            return Some(());
        }
        match self.pieces.next().await {
            Ok(pieces) if pieces.is_empty() => self.ready.extend(narrator.end()),
            Ok(pieces) => {
                self.news.extend(pieces);
                self.narrator = Some(narrator);
            }
            Err(error) => self.ready.extend(narrator.fail(&error)),
        }
        Some(())
    }
}

/// A response that streams the texts as they grow; when it ends, for whatever reason, so do they.
pub(crate) fn streamed(pieces: Pieces, mut narrator: impl Narrator) -> Response {
    let ready = narrator.begin().into();
    let narration = Narration { narrator: Some(narrator), pieces, news: VecDeque::new(), ready };
    let events = stream::unfold(narration, async |mut narration| {
        loop {
            if let Some(event) = narration.ready.pop_front() {
                return Some((Ok::<_, Infallible>(event), narration));
            }
            narration.go_on().await?;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
