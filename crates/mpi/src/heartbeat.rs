//! Checks whether the other processes are alive: a connection of our own between the first process and each of the others, on which both
//! send a sign of life every second.
//!
//! MPI waits for ever for a process whose machine or link has died. The heartbeat ends a process that would wait in vain.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::addresses;

/// How long to try one address.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a new connection may take to identify itself while others wait for it.
const GREETING: Duration = Duration::from_secs(1);
/// I am alive.
const ALIVE: u8 = b'.';
/// I end, and all is well.
const GOODBYE: u8 = b'q';

/// How often signs of life are sent, and how many may be missed.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time between two signs of life.
    pub beat: Duration,
    /// Number of missed signs of life after which the other process counts as dead.
    pub missed: u32,
}

impl Default for Pace {
    /// Every second; dead after 30.
    fn default() -> Self {
        Self { beat: Duration::from_secs(1), missed: 30 }
    }
}

/// How to reach the first process, and what a joining process must send.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invitation {
    addresses: Vec<IpAddr>,
    port: u16,
    token: u64,
}

/// The first process, before the others have joined.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    invitation: Invitation,
}

impl Listener {
    /// Listens on a free port of all addresses.
    ///
    /// # Errors
    /// When there is none.
    pub fn new() -> io::Result<Self> {
        use std::hash::{BuildHasher, Hasher};
        let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))?;
        let port = listener.local_addr()?.port();
        // The hasher is keyed with the system's randomness.
        let token = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Ok(Self { listener, invitation: Invitation { addresses: addresses::own(), port, token } })
    }

    /// What the others need in order to join.
    pub fn invitation(&self) -> &Invitation {
        &self.invitation
    }

    /// The connections of the others, with ranks 1 to `count`, all of which have been invited; fewer if some do not join.
    ///
    /// # Errors
    /// When no connection can be accepted.
    pub fn receive(self, count: usize) -> io::Result<Vec<(usize, TcpStream)>> {
        let mut received = BTreeMap::new();
        self.listener.set_nonblocking(true)?;
        let began = Instant::now();
        while received.len() < count && began.elapsed() < 10 * PATIENCE {
            match self.listener.accept() {
                // If a process connects again, its earlier connection is of no use.
                Ok((stream, _)) => received.extend(self.greet(stream, count).ok()),
                // No connection is waiting; or none can be accepted, and the process that waits for an answer gives up and is not monitored.
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(received.into_iter().collect())
    }

    /// The rank of a process that connects with the right token.
    fn greet(&self, mut stream: TcpStream, count: usize) -> io::Result<(usize, TcpStream)> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(GREETING))?;
        let (mut token, mut rank) = ([0; 8], [0; 8]);
        stream.read_exact(&mut token)?;
        stream.read_exact(&mut rank)?;
        let rank = u64::from_le_bytes(rank) as usize;
        if u64::from_le_bytes(token) != self.invitation.token || !(1..=count).contains(&rank) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        stream.write_all(&[ALIVE])?;
        // A process that has given up meanwhile, and tries another address, has closed its end.
        stream.set_read_timeout(Some(PATIENCE))?;
        match stream.read_exact(&mut [0]) {
            Err(error) if !is_late(&error) => Err(error),
            _ => Ok((rank, stream)),
        }
    }
}

/// Connects the process `rank` to the first one, trying the addresses of the invitation in turn.
///
/// # Errors
/// When none of them reaches it.
pub fn join(invitation: &Invitation, rank: usize) -> io::Result<TcpStream> {
    let mut last = ErrorKind::AddrNotAvailable.into();
    for &address in &invitation.addresses {
        let attempt = || {
            let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, invitation.port), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(&[invitation.token.to_le_bytes(), (rank as u64).to_le_bytes()].concat())?;
            // The first process of another job may listen there.
            stream.read_exact(&mut [0])?;
            stream.write_all(&[ALIVE])?;
            Ok(stream)
        };
        match attempt() {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends and receives signs of life until it is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    ended: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Heartbeat {
    /// Monitors the processes at the other ends of `connections`, with their ranks. `lost` is called with the rank of one that ended
    /// without a goodbye, or was silent for too long, and which of the two it was, as the end of a sentence.
    ///
    /// Also returns those that cannot be monitored for lack of a thread or a descriptor; they are sent a goodbye and continue without
    /// monitoring.
    pub fn new(
        connections: Vec<(usize, TcpStream)>,
        pace: Pace,
        lost: impl Fn(usize, &str) + Send + Sync + 'static,
    ) -> (Self, Vec<(usize, io::Error)>) {
        let (ended, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(lost));
        let watch = |rank: usize, stream: &TcpStream| -> io::Result<()> {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(pace.beat))?;
            let (stream, ended, lost) = (stream.try_clone()?, ended.clone(), lost.clone());
            thread::Builder::new().name(format!("heartbeat of {rank}")).spawn(move || {
                if let Some(how) = listen(stream, pace, &ended) {
                    lost(rank, &how);
                }
            })?;
            Ok(())
        };
        let (mut watched, mut streams, mut unheard) = (Vec::new(), Vec::new(), Vec::new());
        for (rank, mut stream) in connections {
            match watch(rank, &stream) {
                Ok(()) => {
                    watched.push(rank);
                    streams.push(stream);
                }
                Err(error) => {
                    let _ = stream.write_all(&[GOODBYE]);
                    unheard.push((rank, error));
                }
            }
        }
        let heartbeat = Self { ended, streams: Arc::new(Mutex::new(streams)) };
        let (heard_by, until) = (Arc::downgrade(&heartbeat.streams), heartbeat.ended.clone());
        let beat = move || {
            while let Some(streams) = heard_by.upgrade().filter(|_| !until.load(Ordering::Relaxed)) {
                say(&streams, ALIVE);
                drop(streams);
                thread::sleep(pace.beat);
            }
        };
        if let Err(error) = thread::Builder::new().name("heartbeat".to_owned()).spawn(beat) {
            heartbeat.end();
            unheard.extend(watched.into_iter().map(|rank| (rank, error.kind().into())));
        }
        (heartbeat, unheard)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        say(&self.streams, GOODBYE);
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends `sign` to all. Failures are ignored: a process that cannot be reached is noticed by its own silence.
fn say(streams: &Mutex<Vec<TcpStream>>, sign: u8) {
    for stream in streams.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        let _ = stream.write_all(&[sign]);
    }
}

/// Whether nothing came in time.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Receives signs of life until a goodbye, or until this side has `ended`; otherwise returns how the other was lost.
fn listen(mut stream: TcpStream, pace: Pace, ended: &AtomicBool) -> Option<String> {
    let (mut missed, mut signs) = (0, [0; 64]);
    while !ended.load(Ordering::Relaxed) {
        match stream.read(&mut signs) {
            Ok(n) if n > 0 && signs[..n].contains(&GOODBYE) => return None,
            Ok(n) if n > 0 => missed = 0,
            // Timeouts are counted, not measured: time that this process was suspended does not count.
            Err(error) if is_late(&error) => missed += 1,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return (!ended.load(Ordering::Relaxed)).then(|| "has ended without a word".to_owned()),
        }
        if missed >= pace.missed {
            return Some(format!("has given no sign of life for {:.0} seconds", (pace.beat * missed).as_secs_f64()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const QUICK: Pace = Pace { beat: Duration::from_millis(20), missed: 50 };
    const LONG: Duration = Duration::from_secs(60);

    /// The first process's heartbeat, the losses it reports, and the other ends of its connections.
    fn connected(n: usize, pace: Pace) -> (Heartbeat, Receiver<(usize, String)>, Vec<TcpStream>) {
        let listener = Listener::new().unwrap();
        let invitation = listener.invitation().clone();
        let others = thread::spawn(move || (1..=n).map(|rank| join(&invitation, rank).unwrap()).collect());
        let connections = listener.receive(n).unwrap();
        assert_eq!(connections.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), Vec::from_iter(1..=n));
        let (told, losses) = channel();
        let lost = move |rank, how: &str| drop(told.send((rank, how.to_owned())));
        (watching(connections, pace, lost), losses, others.join().unwrap())
    }

    fn watching(connections: Vec<(usize, TcpStream)>, pace: Pace, lost: impl Fn(usize, &str) + Send + Sync + 'static) -> Heartbeat {
        let (heartbeat, unheard) = Heartbeat::new(connections, pace, lost);
        assert!(unheard.is_empty(), "{unheard:?}");
        heartbeat
    }

    #[test]
    fn one_that_ends_without_a_goodbye_is_lost_and_one_that_says_it_is_not() {
        let (_heartbeat, losses, mut others) = connected(2, QUICK);
        let first = others.remove(0);
        let other = watching(vec![(0, first)], QUICK, |_, _| panic!("the first is alive"));
        drop(other);
        drop(others);
        assert_eq!(losses.recv_timeout(LONG).unwrap(), (2, "has ended without a word".to_owned()));
        assert!(losses.try_recv().is_err());
    }

    #[test]
    fn one_that_is_silent_is_lost_and_one_that_beats_is_not() {
        let (_heartbeat, losses, mut others) = connected(2, QUICK);
        let beating = watching(vec![(0, others.remove(0))], QUICK, |_, _| {});
        assert_eq!(losses.recv_timeout(LONG).unwrap(), (2, "has given no sign of life for 1 seconds".to_owned()));
        assert!(losses.try_recv().is_err());
        drop(beating);
    }

    #[test]
    fn both_ends_may_end_in_any_order() {
        let (heartbeat, losses, mut others) = connected(1, QUICK);
        let (told, others_losses) = channel();
        let other = watching(vec![(0, others.remove(0))], QUICK, move |_, how| drop(told.send(how.to_owned())));
        drop(heartbeat);
        drop(other);
        assert!(losses.recv_timeout(LONG).is_err() && others_losses.recv_timeout(LONG).is_err(), "nobody was lost");
    }

    #[test]
    fn whoever_has_not_the_token_is_not_received() {
        let listener = Listener::new().unwrap();
        let mut invitation = listener.invitation().clone();
        let right = invitation.clone();
        invitation.token ^= 1;
        let others = thread::spawn(move || (join(&invitation, 1).is_err(), join(&right, 2).is_err(), join(&right, 1).is_ok()));
        let received = listener.receive(1).unwrap();
        assert_eq!(others.join().unwrap(), (true, true, true));
        assert_eq!(received[0].0, 1);
    }

    #[test]
    fn strangers_hold_nobody_up_and_a_connection_that_was_given_up_counts_for_none() {
        let listener = Listener::new().unwrap();
        let invitation = listener.invitation().clone();
        let others = thread::spawn(move || {
            let places: Vec<SocketAddr> = invitation.addresses.iter().map(|&address| SocketAddr::new(address, invitation.port)).collect();
            let stranger = TcpStream::connect(&places[..]).unwrap();
            let mut given_up = TcpStream::connect(&places[..]).unwrap();
            given_up.write_all(&[invitation.token.to_le_bytes(), 1u64.to_le_bytes()].concat()).unwrap();
            drop(given_up);
            (stranger, join(&invitation, 1).unwrap())
        });
        let received = listener.receive(1).unwrap();
        let (_stranger, other) = others.join().unwrap();
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].1.peer_addr().unwrap().port(), other.local_addr().unwrap().port());
    }

    #[test]
    fn one_that_cannot_be_watched_is_told_goodbye() {
        let listener = Listener::new().unwrap();
        let invitation = listener.invitation().clone();
        let other = thread::spawn(move || join(&invitation, 1).unwrap());
        let connections = listener.receive(1).unwrap();
        let (told, losses) = channel();
        let _other = watching(vec![(0, other.join().unwrap())], QUICK, move |_, how| drop(told.send(how.to_owned())));
        // The system refuses a timeout of zero.
        let (_heartbeat, unheard) = Heartbeat::new(connections, Pace { beat: Duration::ZERO, ..QUICK }, |_, _| {});
        assert_eq!(unheard.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [1]);
        assert!(losses.recv_timeout(LONG).is_err(), "it was not lost");
    }
}
