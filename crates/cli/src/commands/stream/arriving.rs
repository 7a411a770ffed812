//! Standard input as it arrives: answers are written out before more input is waited for.

use std::cell::RefCell;
use std::io::{self, BufWriter, ErrorKind, Read, Stdout, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

/// Bytes asked for at once.
const PIECE: usize = 1 << 16;
/// Pieces that may wait to be read.
const PIECES: usize = 4;
/// How often to check whether a stop was asked for.
const GLANCE: Duration = Duration::from_millis(50);

/// The output, shared by its writers and by the input, which flushes it before waiting.
pub type Out = Rc<RefCell<BufWriter<Stdout>>>;

/// Standard input. It ends with the pipe, or when a stop is asked for.
pub struct Arriving {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
    out: Out,
    stop: Arc<AtomicBool>,
}

impl Arriving {
    /// Begins to read.
    pub fn new(out: Out, stop: Arc<AtomicBool>) -> Self {
        let (sender, pieces) = sync_channel(PIECES);
        // It may wait for ever, and ends with the process.
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut piece = vec![0; PIECE];
                let read = match input.read(&mut piece) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Ok(0) => return,
                    read => read.map(|n| {
                        piece.truncate(n);
                        piece
                    }),
                };
                let failed = read.is_err();
                if sender.send(read).is_err() || failed {
                    return;
                }
            }
        });
        Self { pieces, piece: Vec::new(), at: 0, out, stop }
    }

    /// The next piece; `None` at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.pieces.try_recv() {
            Ok(piece) => return piece.map(Some),
            Err(TryRecvError::Disconnected) => return Ok(None),
            Err(TryRecvError::Empty) => self.out.borrow_mut().flush()?,
        }
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match self.pieces.recv_timeout(GLANCE) {
                Ok(piece) => return piece.map(Some),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            match self.next_piece()? {
                None => return Ok(0),
                Some(piece) => (self.piece, self.at) = (piece, 0),
            }
        }
        let n = buffer.len().min(self.piece.len() - self.at);
        buffer[..n].copy_from_slice(&self.piece[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
