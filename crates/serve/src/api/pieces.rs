//! What a model says of a request, several tokens at a time: at thousands a second, an event of the network for each would cost more than the model.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc::UnboundedReceiver;

use super::error::ApiError;
use crate::job::{Ended, Event, Generated};
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
    /// Where it begins: of how many of the prompt's tokens the state was known, and how probable those but the first are.
    pub read: Option<(usize, Vec<Logprob>)>,
    pub ended: Option<Ended>,
}

/// The pieces of a request's texts.
pub(crate) struct Pieces {
    told: UnboundedReceiver<Event>,
    /// Texts that have not ended.
    left: usize,
}

impl Pieces {
    pub fn new(told: UnboundedReceiver<Event>, choices: usize) -> Self {
        Self { told, left: choices }
    }

    /// What has come since, waiting for something; nothing once all texts have ended.
    pub async fn next(&mut self) -> Result<Vec<Piece>, ApiError> {
        let mut pieces = Vec::new();
        if self.left == 0 {
            return Ok(pieces);
        }
        // That a prompt has been read is no news by itself.
        while pieces.iter().all(|piece: &Piece| piece.tokens.is_empty() && piece.ended.is_none()) {
            let event = self.told.recv().await.ok_or_else(ApiError::gone)?;
            self.add(&mut pieces, event)?;
        }
        if self.left > 0 {
            tokio::time::sleep(GATHER).await;
            while let Ok(event) = self.told.try_recv() {
                self.add(&mut pieces, event)?;
            }
        }
        Ok(pieces)
    }

    fn add(&mut self, pieces: &mut Vec<Piece>, event: Event) -> Result<(), ApiError> {
        match event {
            Event::Failed { sentence } => return Err(ApiError::failed(sentence)),
            Event::Read { choice, cached, logprobs } => piece_of(pieces, choice).read = Some((cached, logprobs)),
            Event::Token(Generated { choice, token, text, logprob, ended }) => {
                let piece = piece_of(pieces, choice);
                piece.text += &text;
                piece.tokens.extend(token);
                piece.logprobs.extend(logprob);
                piece.ended = ended;
                self.left -= usize::from(ended.is_some());
            }
        }
        Ok(())
    }
}

/// What is new of a text, with room for more.
fn piece_of(pieces: &mut Vec<Piece>, choice: usize) -> &mut Piece {
    let at = pieces.iter().position(|piece| piece.choice == choice).unwrap_or_else(|| {
        pieces.push(Piece { choice, ..Piece::default() });
        pieces.len() - 1
    });
    &mut pieces[at]
}

/// Turns pieces into the events of an interface.
pub(crate) trait Narrator: Send + 'static {
    fn begin(&mut self) -> Vec<Sent> {
        Vec::new()
    }
    fn tell(&mut self, piece: Piece) -> Vec<Sent>;
    fn fail(&mut self, error: &ApiError) -> Vec<Sent>;
    fn end(&mut self) -> Vec<Sent>;
}

struct Narration<N> {
    narrator: N,
    pieces: Pieces,
    ready: VecDeque<Sent>,
    is_over: bool,
}

impl<N: Narrator> Narration<N> {
    async fn go_on(&mut self) {
        match self.pieces.next().await {
            Ok(pieces) if pieces.is_empty() => {
                self.ready.extend(self.narrator.end());
                self.is_over = true;
            }
            Ok(pieces) => pieces.into_iter().for_each(|piece| self.ready.extend(self.narrator.tell(piece))),
            Err(error) => {
                self.ready.extend(self.narrator.fail(&error));
                self.is_over = true;
            }
        }
    }
}

/// A response that goes on as the texts do, and with whose end, whoever brings it about, they end too.
pub(crate) fn streamed(pieces: Pieces, mut narrator: impl Narrator) -> Response {
    let ready = narrator.begin().into();
    let narration = Narration { narrator, pieces, ready, is_over: false };
    let events = stream::unfold(narration, async |mut narration| {
        loop {
            if let Some(event) = narration.ready.pop_front() {
                return Some((Ok::<_, Infallible>(event), narration));
            }
            if narration.is_over {
                return None;
            }
            narration.go_on().await;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
