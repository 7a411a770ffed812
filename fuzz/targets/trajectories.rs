//! Recorded episodes: as they are on disk, or with the number of steps and the checksums corrected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::offline_rl::{LeftPadding, OfflineRl, Trajectories};
use minrnn_fuzz::library::use_task;
use minrnn_fuzz::{file, folder, repository_files, seeds};

const HEADER_LEN: usize = 36;

/// The same steps as a file with valid lengths and checksums; nothing if `data` is too short for a header, or its widths overflow.
fn repaired(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    let width = |at: usize| Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize);
    let row = 4usize.checked_mul(width(12)?.checked_add(width(16)?)?.checked_add(1)?)? + 2;
    let n_steps = data.len().checked_sub(HEADER_LEN)? / row;
    bytes.truncate(HEADER_LEN + n_steps * row);
    bytes[20..28].copy_from_slice(&(n_steps as u64).to_le_bytes());
    let payload = crc32fast::hash(&bytes[HEADER_LEN..]).to_le_bytes();
    bytes[28..32].copy_from_slice(&payload);
    let header = crc32fast::hash(&bytes[..32]).to_le_bytes();
    bytes[32..HEADER_LEN].copy_from_slice(&header);
    Some(bytes)
}

fuzz_target!(
    init: seeds("trajectories", || repository_files("crates/minrnn/tests/fixtures/offline_rl", "trajectories", 1 << 13)),
    |data: &[u8]| {
        let read = Trajectories::read(file("t", data)).or_else(|error| match repaired(data) {
            Some(bytes) => Trajectories::read(file("t", &bytes)),
            None => Err(error),
        });
        let Ok(trajectories) = read else { return };
        let path = folder().join("again");
        trajectories.write(&path).expect("it can be written");
        assert_eq!(Trajectories::read(&path).expect("what was written is read"), trajectories);
        for episode in trajectories.iter() {
            assert!(episode.n_steps() > 0 && episode.returns_to_go().len() == episode.n_steps());
        }
        assert!(!trajectories.mean_return().is_nan() && trajectories.best_return() >= trajectories.mean_return() - 1e-3 * trajectories.mean_return().abs());
        if let Ok(task) = OfflineRl::new(trajectories, 3, Some(10.0), LeftPadding::Cut) {
            use_task(&task);
        }
    }
);
