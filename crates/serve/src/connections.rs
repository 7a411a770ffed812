//! Connections: accepted until the server ends, and dropped if a client keeps one waiting.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

/// The pause after the system could not accept one, as when too many files are open.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of an answer that the system holds for a client that reads none.
const UNSENT: usize = 1 << 16;
/// Practically for ever, and still safe to add to a time.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// Answers all clients until `stopped`, then only requests already under way. A connection ends when, for as long as `patience`, its client is idle, has not
/// sent the whole head of a request, or reads nothing of an answer.
pub(crate) async fn serve(listener: TcpListener, router: Router, patience: Duration, stopped: impl Future<Output = ()>) {
    let patience = patience.min(FOR_EVER);
    let (ending, ends) = watch::channel(false);
    let mut stopped = pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped.as_mut() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                // Each token is a small packet, which must not wait for the next.
                let _ = stream.set_nodelay(true);
                let _ = keep_little_unsent(&stream);
                tokio::spawn(connection(Patient::new(stream, patience), router.clone(), patience, ends.clone()));
            }
            Err(error) if is_of_connection(&error) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
    drop((listener, ends));
    let _ = ending.send(true);
    ending.closed().await;
}

/// Limits what the system buffers for a client: otherwise a text goes on for some megabytes after its client has stopped reading.
fn keep_little_unsent(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    // Limits only what is unsent, so a long line can still have much in flight.
    #[cfg(target_os = "linux")]
    return socket.set_tcp_notsent_lowat(UNSENT as u32);
    #[cfg(not(target_os = "linux"))]
    socket.set_send_buffer_size(UNSENT)
}

/// Whether an error concerns only the connection that was to be accepted.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection<S>(stream: S, router: Router, patience: Duration, mut ends: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut http = Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(patience);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ends.wait_for(|&ends| ends) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A stream that fails when the other side reads nothing for too long.
struct Patient<S> {
    stream: S,
    patience: Duration,
    /// The deadline, while nothing is being read.
    too_long: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, too_long: None }
    }

    /// The result of a write, or an error if it has waited too long.
    fn awaited(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.too_long = None;
            return written;
        }
        let too_long = self.too_long.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        too_long.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.awaited(context, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.awaited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
