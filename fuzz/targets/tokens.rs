//! Token files: as they are on disk, or with the number of tokens and the checksums corrected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn::data::{TokenFile, TokenWriter};
use minrnn_fuzz::{file, folder, seeds};

const HEADER_LEN: usize = 72;

fn repaired(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    let width = u32::from_le_bytes(data.get(12..16)?.try_into().ok()?) as usize;
    let count = data.len().checked_sub(HEADER_LEN)?.checked_div(width)?;
    bytes.truncate(HEADER_LEN + count * width);
    bytes[24..32].copy_from_slice(&(count as u64).to_le_bytes());
    let payload = crc32fast::hash(&bytes[HEADER_LEN..]).to_le_bytes();
    bytes[64..68].copy_from_slice(&payload);
    let header = crc32fast::hash(&bytes[..68]).to_le_bytes();
    bytes[68..HEADER_LEN].copy_from_slice(&header);
    Some(bytes)
}

fuzz_target!(
    init: seeds("tokens", || Vec::from([200, 1000, 70_000].map(|vocab_size| {
        let mut writer = TokenWriter::create(folder().join("seed"), vocab_size).expect("it can be written");
        writer.push(&(0..100).map(|i| i * 7 % 200).collect::<Vec<_>>()).expect("the tokens are known");
        std::fs::read(writer.finish([7; 32]).expect("it can be written").path()).expect("it was written")
    }))),
    |data: &[u8]| {
        let opened = TokenFile::open(file("t", data)).or_else(|error| match repaired(data) {
            Some(bytes) => TokenFile::open(file("t", &bytes)),
            None => Err(error),
        });
        let Ok(tokens) = opened else { return };
        assert!(tokens.len() <= data.len() as u64);
        let intact = tokens.verify().is_ok();
        let mut all = vec![0; tokens.len() as usize];
        let read = tokens.read(0, &mut all);
        assert!(read.is_err() || all.iter().all(|&id| (id as usize) < tokens.vocab_size()));
        assert!(tokens.read(tokens.len(), &mut [0]).is_err() && tokens.read(u64::MAX, &mut [0; 2]).is_err());
        if intact && read.is_ok() && tokens.vocab_size() < 1 << 20 {
            let mut writer = TokenWriter::create(folder().join("again"), tokens.vocab_size()).expect("it can be written");
            writer.push(&all).expect("the tokens are known");
            let again = writer.finish(tokens.source_sha256()).expect("it can be written");
            assert_eq!(again.len(), tokens.len());
        }
    }
);
