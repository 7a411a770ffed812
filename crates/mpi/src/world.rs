//! The ranks of the job, connected by MPI.

use minrnn::train::Ranks;
use mpi::datatype::PartitionMut;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

/// Bytes of each rank that are gathered at once; longer messages need a second gather.
const SHORT: usize = 512;

/// All processes of the job. Errors inside MPI end the job (its default, `MPI_ERRORS_ARE_FATAL`).
#[derive(Debug)]
pub struct World {
    rank: usize,
    size: usize,
}

impl World {
    /// Must be called after MPI is initialised.
    pub fn new() -> Self {
        let world = SimpleCommunicator::world();
        Self { rank: world.rank() as usize, size: world.size() as usize }
    }
}

impl Ranks for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, given: &[f32], taken: &mut [f32]) {
        assert_eq!((given.len(), given.len() % self.size), (taken.len(), 0), "the pieces must be equal");
        SimpleCommunicator::world().all_to_all_into(given, taken);
    }

    fn collect(&self, own: &[f32], all: &mut [f32]) {
        assert_eq!(all.len(), self.size * own.len(), "every rank has as many numbers");
        SimpleCommunicator::world().all_gather_into(own, all);
    }

    fn collect_first(&self, own: &[f32], all: &mut [f32]) {
        let world = SimpleCommunicator::world();
        let first = world.process_at_rank(0);
        if self.rank > 0 {
            return first.gather_into(own);
        }
        assert_eq!(all.len(), self.size * own.len(), "every rank has as many numbers");
        first.gather_into_root(own, all);
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        const LENGTH: usize = size_of::<u64>();
        let world = SimpleCommunicator::world();
        let mut block = [0; LENGTH + SHORT];
        block[..LENGTH].copy_from_slice(&(own.len() as u64).to_le_bytes());
        let short = own.len().min(SHORT);
        block[LENGTH..LENGTH + short].copy_from_slice(&own[..short]);
        let mut blocks = vec![0; self.size * block.len()];
        world.all_gather_into(&block[..], &mut blocks[..]);
        let blocks = blocks.chunks_exact(block.len()).map(|block| block.split_at(LENGTH));
        let blocks: Vec<(usize, &[u8])> =
            blocks.map(|(len, bytes)| (u64::from_le_bytes(len.try_into().expect("8 bytes")) as usize, bytes)).collect();
        if blocks.iter().all(|(len, _)| *len <= SHORT) {
            return blocks.into_iter().map(|(len, bytes)| bytes[..len].to_vec()).collect();
        }
        // Every rank knows all lengths, so either all ranks get here or none.
        let total: usize = blocks.iter().map(|(len, _)| len).sum();
        assert!(total <= i32::MAX as usize, "{total} bytes are more than MPI counts");
        let counts: Vec<i32> = blocks.iter().map(|(len, _)| *len as i32).collect();
        let places: Vec<i32> = counts.iter().scan(0, |at, len| Some(std::mem::replace(at, *at + len))).collect();
        let mut all = vec![0; total];
        world.all_gather_varcount_into(own, &mut PartitionMut::new(&mut all[..], &counts[..], &places[..]));
        let piece = |(&at, &len): (&i32, &i32)| all[at as usize..(at + len) as usize].to_vec();
        places.iter().zip(&counts).map(piece).collect()
    }

    fn abort(&self, code: u8) -> ! {
        SimpleCommunicator::world().abort(code.into())
    }
}
