//! Trajectories on disk.
//!
//! All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `MINRNNRL` |
//! | 8..12 | version, 1 |
//! | 12..16 | numbers in an observation, S |
//! | 16..20 | numbers in an action, A |
//! | 20..28 | number of steps N |
//! | 28..32 | CRC-32 of everything from byte 36 on |
//! | 32..36 | CRC-32 of bytes 0..32 |
//! | 36.. | observations `[N, S]`, actions `[N, A]`, rewards `[N]`, all f32; terminals `[N]`, timeouts `[N]`, a byte 0 or 1 each |
//!
//! A trajectory ends with a row whose terminal or timeout is 1; rows after the last such row are not read as data. Actions lie in −1 to 1.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::super::atomic::AtomicFile;
use super::trajectories::{Ending, Trajectories};
use crate::{Error, Result};

const VERSION: u32 = 1;
const HEADER_LEN: usize = 36;
const BUFFER_LEN: usize = 1 << 16;
const AGAIN: &str = "make it again with tools/convert_trajectories.py";

impl Trajectories {
    /// The first bytes of a file of trajectories.
    pub const MAGIC: [u8; 8] = *b"MINRNNRL";

    /// Reads the file `path`.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read; [`Error::Malformed`] when it is not a whole file of trajectories of this version, or holds no
    /// complete trajectory, a value that is not finite or an action outside −1 to 1.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::read_and_count_rest(path)?.0)
    }

    /// Like [`read`](Self::read), but also returns the number of steps left out because they follow the last ending.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_and_count_rest(path: impl AsRef<Path>) -> Result<(Self, usize)> {
        let path = path.as_ref();
        let io = |source| Error::io("read the trajectories", path, source);
        let malformed = |problem: String| Error::malformed(path, problem);
        let file = File::open(path).map_err(io)?;
        let file_len = file.metadata().map_err(io)?.len();
        if file_len < HEADER_LEN as u64 {
            let problem =
                format!("is not a file of trajectories: it has {file_len} bytes, and the header alone takes {HEADER_LEN}; {AGAIN}");
            return Err(malformed(problem));
        }
        let mut file = BufReader::with_capacity(BUFFER_LEN, file);
        let mut bytes = [0; HEADER_LEN];
        file.read_exact(&mut bytes).map_err(io)?;
        let header = Header::parse(&bytes, file_len).map_err(malformed)?;

        let mut payload = Payload { file, crc: crc32fast::Hasher::new() };
        let mut read = || -> Result<_, Problem> {
            let Header { observation_width, action_width, n_steps, .. } = header;
            let observations = payload.numbers(n_steps * observation_width, "observations")?;
            let actions = payload.numbers(n_steps * action_width, "actions")?;
            let rewards = payload.numbers(n_steps, "rewards")?;
            let (terminals, timeouts) = (payload.flags(n_steps, "terminals")?, payload.flags(n_steps, "timeouts")?);
            Ok((observations, actions, rewards, terminals, timeouts))
        };
        let (observations, actions, rewards, terminals, timeouts) = read().map_err(|problem| match problem {
            Problem::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                malformed(format!("was cut short while it was read; {AGAIN}"))
            }
            Problem::Io(source) => io(source),
            Problem::Malformed(problem) => malformed(problem),
        })?;
        if payload.crc.finalize() != header.payload_crc {
            return Err(malformed(format!("is damaged: its contents do not match their checksum; {AGAIN}")));
        }
        let endings = terminals.into_iter().zip(timeouts).map(|(terminal, timeout)| Ending::of(terminal != 0, timeout != 0));
        let widths = [header.observation_width, header.action_width];
        let trajectories = Self::from_rows(widths, observations, actions, rewards, endings).map_err(|error| error.in_file(path))?;
        if trajectories.is_empty() {
            let n_steps = header.n_steps;
            return Err(malformed(format!("has no complete trajectory: none of its {n_steps} steps is a terminal or a timeout")));
        }
        let rest = header.n_steps - trajectories.n_steps();
        Ok((trajectories, rest))
    }

    /// Writes the file `path`; it appears once it is complete.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let [observation_width, action_width] = self.widths();
        let mut file = AtomicFile::create(path.as_ref(), "write the trajectories")?;
        file.write(&[0; HEADER_LEN])?;
        let mut crc = crc32fast::Hasher::new();
        let mut put = |bytes: &[u8]| {
            crc.update(bytes);
            file.write(bytes)
        };
        let mut numbers = |values: &[f32]| {
            values.chunks(BUFFER_LEN / 4).try_for_each(|chunk| put(&chunk.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()))
        };
        self.iter().try_for_each(|episode| numbers(episode.observations))?;
        self.iter().try_for_each(|episode| numbers(episode.actions))?;
        self.iter().try_for_each(|episode| numbers(episode.rewards))?;
        for ending in [Ending::Terminal, Ending::Timeout] {
            for episode in self.iter() {
                let mut flags = vec![0; episode.n_steps()];
                flags[episode.n_steps() - 1] = u8::from(episode.ending == ending);
                put(&flags)?;
            }
        }
        let header = Header { observation_width, action_width, n_steps: self.n_steps(), payload_crc: crc.finalize() };
        file.rewrite_start(&header.to_bytes())?;
        file.commit()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    observation_width: usize,
    action_width: usize,
    n_steps: usize,
    payload_crc: u32,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&Trajectories::MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.observation_width as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&(self.action_width as u32).to_le_bytes());
        bytes[20..28].copy_from_slice(&(self.n_steps as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Parses the header of a file of `file_len` bytes, which bounds every allocation.
    fn parse(bytes: &[u8; HEADER_LEN], file_len: u64) -> Result<Self, String> {
        let u32_at = |i| u32::from_le_bytes(std::array::from_fn(|j| bytes[i + j]));
        if bytes[..8] != Trajectories::MAGIC {
            let sentence = "is not a file of trajectories (it does not begin with MINRNNRL); HDF5 files of D4RL or Minari are converted by \
                            tools/convert_trajectories.py";
            return Err(sentence.to_owned());
        }
        if u32_at(8) != VERSION {
            return Err(format!("is a file of trajectories of version {}, but this program reads version {VERSION}; {AGAIN}", u32_at(8)));
        }
        if crc32fast::hash(&bytes[..32]) != u32_at(32) {
            return Err(format!("is damaged: its header does not match its checksum; {AGAIN}"));
        }
        let (observation, action) = (u32_at(12), u32_at(16));
        let n_steps = u64::from_le_bytes(std::array::from_fn(|j| bytes[20 + j]));
        if observation == 0 || action == 0 || n_steps == 0 {
            return Err(format!(
                "has nothing to learn from: {n_steps} steps with observations of {observation} numbers and actions of {action}"
            ));
        }
        let row = 4 * (u64::from(observation) + u64::from(action) + 1) + 2;
        let expected = n_steps.checked_mul(row).and_then(|payload| payload.checked_add(HEADER_LEN as u64));
        let header = usize::try_from(n_steps).ok().filter(|_| expected == Some(file_len)).map(|n_steps| Self {
            observation_width: observation as usize,
            action_width: action as usize,
            n_steps,
            payload_crc: u32_at(28),
        });
        header.ok_or_else(|| {
            format!("is damaged: its header promises {n_steps} steps of {row} bytes, but the file has {file_len} bytes; {AGAIN}")
        })
    }
}

enum Problem {
    Io(std::io::Error),
    Malformed(String),
}

/// What follows the header, with its checksum so far.
struct Payload {
    file: BufReader<File>,
    crc: crc32fast::Hasher,
}

impl Payload {
    /// `n` finite numbers.
    fn numbers(&mut self, n: usize, what: &str) -> Result<Vec<f32>, Problem> {
        let mut values = room(n, what)?;
        let mut buffer = [0; BUFFER_LEN];
        while values.len() < n {
            let bytes = &mut buffer[..(4 * (n - values.len())).min(BUFFER_LEN)];
            self.fill(bytes)?;
            values.extend(bytes.as_chunks().0.iter().map(|&number| f32::from_le_bytes(number)));
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(Problem::Malformed(format!("has a value that is not finite: number {at} of the {what} is {}", values[at]))),
            None => Ok(values),
        }
    }

    /// `n` bytes that are 0 or 1.
    fn flags(&mut self, n: usize, what: &str) -> Result<Vec<u8>, Problem> {
        let mut flags = room(n, what)?;
        flags.resize(n, 0);
        self.fill(&mut flags)?;
        match flags.iter().position(|&flag| flag > 1) {
            Some(at) => {
                Err(Problem::Malformed(format!("is damaged: number {at} of the {what} is {}, expected 0 or 1; {AGAIN}", flags[at])))
            }
            None => Ok(flags),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Problem> {
        self.file.read_exact(bytes).map_err(Problem::Io)?;
        self.crc.update(bytes);
        Ok(())
    }
}

fn room<T>(n: usize, what: &str) -> Result<Vec<T>, Problem> {
    let mut values = Vec::new();
    match values.try_reserve_exact(n) {
        Ok(()) => Ok(values),
        Err(_) => Err(Problem::Malformed(format!("is too large for the memory of this machine: {n} {what}"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Trajectory;
    use super::*;

    fn example() -> Trajectories {
        let mut trajectories = Trajectories::new(3, 2).unwrap();
        for (index, (n_steps, ending)) in [(4, Ending::Timeout), (1, Ending::Terminal), (7, Ending::Terminal)].into_iter().enumerate() {
            let values = |n: usize| (0..n).map(|i| ((i * i + index) % 17) as f32 / 8.0 - 1.0).collect::<Vec<_>>();
            let (observations, actions, rewards) = (values(3 * n_steps), values(2 * n_steps), values(n_steps));
            trajectories.push(Trajectory { observations: &observations, actions: &actions, rewards: &rewards, ending }).unwrap();
        }
        trajectories
    }

    fn written() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        example().write(&path).unwrap();
        (dir, path)
    }

    #[test]
    fn what_is_written_reads_back() {
        let (_dir, path) = written();
        assert_eq!(Trajectories::read(&path).unwrap(), example());
    }

    #[test]
    fn files_converted_from_hdf5_read_as_they_should() {
        // Made by tools/convert_trajectories.py --write-examples, which says what they hold.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/offline_rl");
        for name in ["d4rl", "minari"] {
            let trajectories = Trajectories::read(folder.join(name).with_extension("trajectories")).unwrap();
            assert_eq!((trajectories.len(), trajectories.n_steps(), trajectories.widths()), (2, 5, [3, 2]), "{name}");
            let (first, second) = (trajectories.get(0), trajectories.get(1));
            assert_eq!((first.ending, second.ending), (Ending::Terminal, Ending::Timeout), "{name}");
            assert_eq!((first.rewards, second.rewards), (&[0.0, 10.0, 20.0][..], &[30.0, 40.0][..]), "{name}");
            assert_eq!(second.observations, [3.0, 3.25, 3.5, 4.0, 4.25, 4.5], "{name}");
            assert_eq!(second.actions, [-0.375, 0.375, -0.5, 0.5], "{name}");
        }
    }

    #[test]
    fn a_header_that_promises_more_than_the_file_holds_is_refused() {
        for n_steps in [usize::MAX, usize::MAX / 22, 13] {
            let header = Header { observation_width: 3, action_width: 2, n_steps, payload_crc: 0 };
            let problem = Header::parse(&header.to_bytes(), 36 + 12 * 26).unwrap_err();
            assert!(problem.contains("348 bytes"), "{problem}");
        }
        let huge = Header { observation_width: u32::MAX as usize, action_width: u32::MAX as usize, n_steps: 1 << 30, payload_crc: 0 };
        assert!(Header::parse(&huge.to_bytes(), 348).is_err());
    }

    #[test]
    fn values_that_cannot_be_learned_from_are_named() {
        let (_dir, path) = written();
        let with = |at: usize, new: &[u8]| {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at..at + new.len()].copy_from_slice(new);
            let other = path.with_extension("other");
            std::fs::write(&other, bytes).unwrap();
            Trajectories::read(&other).unwrap_err().to_string()
        };
        assert!(with(HEADER_LEN + 4, &f32::NAN.to_le_bytes()).contains("number 1 of the observations is NaN"));
        let terminals = HEADER_LEN + 12 * 24;
        assert!(with(terminals + 2, &[7]).contains("number 2 of the terminals is 7"));
        assert!(with(0, b"\x89HDF\r\n\x1a\n").contains("converted"));
        assert!(with(HEADER_LEN, &[1]).contains("checksum"));
    }

    /// Changes the contents of the example's file and updates its checksums.
    fn change(path: &Path, change: impl FnOnce(&mut [u8])) {
        let mut bytes = std::fs::read(path).unwrap();
        change(&mut bytes[HEADER_LEN..]);
        let header = Header { observation_width: 3, action_width: 2, n_steps: 12, payload_crc: crc32fast::hash(&bytes[HEADER_LEN..]) };
        bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn a_file_without_an_ending_is_refused() {
        let (_dir, path) = written();
        change(&path, |contents| contents[12 * 24..].fill(0));
        assert!(Trajectories::read(&path).unwrap_err().to_string().contains("none of its 12 steps"));
    }

    #[test]
    fn actions_where_no_policy_acts_are_named_by_their_place() {
        for (number, told) in [(1.0 + f32::EPSILON, "1.0000001"), (-7.5, "-7.5"), (1e30, "1e30")] {
            let (_dir, path) = written();
            // The second number of the action of step 3.
            let place = 12 * 3 * 4 + 4 * (2 * 3 + 1);
            change(&path, |contents| contents[place..place + 4].copy_from_slice(&number.to_le_bytes()));
            let refused = Trajectories::read(&path).unwrap_err().to_string();
            assert!(refused.contains(&format!("step 3, number 1 of its action (both counted from 0) is {told};")), "{refused}");
            change(&path, |contents| contents[place..place + 4].copy_from_slice(&number.signum().to_le_bytes()));
            assert!(Trajectories::read(&path).is_ok());
        }
    }

    #[test]
    fn steps_behind_the_last_ending_are_counted() {
        let (_dir, path) = written();
        assert_eq!(Trajectories::read_and_count_rest(&path).unwrap().1, 0);
        // The ending of the very last step.
        change(&path, |contents| contents[12 * 24 + 11] = 0);
        let (read, rest) = Trajectories::read_and_count_rest(&path).unwrap();
        assert_eq!((read.len(), read.n_steps(), rest), (2, 5, 7));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn truncated_or_corrupted_files_are_refused(cut in any::<prop::sample::Index>(), flip in 1_u8..=255, truncate: bool) {
            let (_dir, path) = written();
            let mut bytes = std::fs::read(&path).unwrap();
            let at = cut.index(bytes.len());
            if truncate { bytes.truncate(at) } else { bytes[at] ^= flip }
            std::fs::write(&path, bytes).unwrap();
            prop_assert!(Trajectories::read(&path).is_err());
        }
    }
}
