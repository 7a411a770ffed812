//! The source of all randomness: independent ChaCha8 generators named by (seed, purpose, index, part), derived as described in
//! [`minrnn_stream::rng`].
//!
//! Each can be recreated from its name alone: a resumed run stores no generator. The values never change within version 1 of the
//! derivation.

use minrnn_stream::rng;

pub use minrnn_stream::rng::ChaCha8Rng;

/// The purpose of a generator. The numbers are part of the derivation and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights; the index numbers the parameter.
    Init = 1,
    /// Training batches; the index is the iteration, the part is the micro-step.
    TrainData = 2,
    /// Batches that choose the best checkpoint; the index is the batch.
    ValidationData = 3,
    /// Batches of the final report; the index is the batch.
    TestData = 4,
    /// Dropout masks; the index is the iteration.
    Dropout = 5,
    /// Choosing tokens in generation; the index is the row.
    Sampling = rng::SAMPLING,
    /// The order in which data is visited; the index is the pass.
    Order = 7,
    /// Weights and inputs of benchmarks and verification cases.
    Bench = 8,
}

/// The generator of part 0.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> ChaCha8Rng {
    rng::stream(seed, purpose as u64, index)
}

/// The generator named by all four; `part` is, for example, the micro-step inside iteration `index`.
pub fn substream(seed: u64, purpose: Purpose, index: u64, part: u64) -> ChaCha8Rng {
    rng::substream(seed, purpose as u64, index, part)
}

/// A 64-bit key for counter-based generators (dropout): the first value of [`stream`].
pub fn key(seed: u64, purpose: Purpose, index: u64) -> u64 {
    rng::key(seed, purpose as u64, index)
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn the_number_of_a_purpose_stays_what_it_was() {
        // From tools/rng_golden.py, which writes ChaCha8 out in plain Python.
        assert_eq!(key(0, Purpose::Init, 0), 17_378_421_578_299_388_727);
        assert_eq!(key(42, Purpose::TrainData, 7), 6_210_293_670_400_246_101);
        assert_eq!(substream(42, Purpose::TrainData, 7, 1).next_u64(), 6_569_628_832_890_535_238);
        assert_eq!(key(u64::MAX, Purpose::Dropout, u64::MAX), 8_292_254_906_964_491_207);
        let rest = [Purpose::ValidationData, Purpose::TestData, Purpose::Sampling, Purpose::Order, Purpose::Bench];
        assert_eq!(rest.map(|purpose| purpose as u64), [3, 4, 6, 7, 8]);
    }
}
