//! The source of all randomness: independent ChaCha8 generators named by (seed, purpose, index, part).
//!
//! The 32-byte ChaCha key is the little-endian concatenation of the seed, the purpose (a number), the index, and the eight bytes
//! `minrnn/1`; the 64-bit ChaCha stream number is the part. ChaCha is a pseudo-random function of its key and stream number, so any two
//! generators that differ in one of the four are independent, and each can be recreated from its name alone: a resumed run stores no
//! generator. These values never change within version 1 of the derivation.

pub use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The purpose of choosing tokens in generation; the index is the row. Training has its own purposes (`minrnn::rng::Purpose`); a number is
/// never used for two.
pub const SAMPLING: u64 = 6;

/// The generator of part 0; see the module text for the derivation.
pub fn stream(seed: u64, purpose: u64, index: u64) -> ChaCha8Rng {
    substream(seed, purpose, index, 0)
}

/// The generator named by all four; `part` is, for example, the micro-step inside iteration `index`.
pub fn substream(seed: u64, purpose: u64, index: u64, part: u64) -> ChaCha8Rng {
    let mut key = *b"........................minrnn/1";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&purpose.to_le_bytes());
    key[16..24].copy_from_slice(&index.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(part);
    rng
}

/// A 64-bit key for counter-based generators (dropout): the first value of [`stream`].
pub fn key(seed: u64, purpose: u64, index: u64) -> u64 {
    stream(seed, purpose, index).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_stable_across_versions() {
        // From tools/rng_golden.py, which writes ChaCha8 out in plain Python.
        assert_eq!(key(0, 1, 0), 17_378_421_578_299_388_727);
        assert_eq!(key(42, 2, 7), 6_210_293_670_400_246_101);
        assert_eq!(substream(42, 2, 7, 1).next_u64(), 6_569_628_832_890_535_238);
        assert_eq!(key(u64::MAX, 5, u64::MAX), 8_292_254_906_964_491_207);
    }

    #[test]
    fn changing_any_part_of_the_name_changes_the_stream() {
        let mut first = vec![
            substream(1, 1, 2, 3).next_u64(),
            substream(2, 1, 2, 3).next_u64(),
            substream(1, 7, 2, 3).next_u64(),
            substream(1, 1, 3, 3).next_u64(),
            substream(1, 1, 2, 4).next_u64(),
        ];
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 5);
    }

    #[test]
    fn bits_of_neighbouring_streams_are_uncorrelated() {
        let mut differing = 0;
        for index in 0..1000 {
            differing += (key(0, 2, index) ^ key(0, 2, index + 1)).count_ones();
        }
        // 64 000 fair bits: mean 32 000, standard deviation 126.
        assert!(differing.abs_diff(32_000) < 800, "{differing}");
    }
}
