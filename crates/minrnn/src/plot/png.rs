//! PNG files: eight bits each for red, green and blue, without filters, which lines on white do not need.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const CHANNELS: usize = 3;
/// Eight bits, red green blue, the only compression method, the only set of filters, rows from top to bottom.
const FORMAT: [u8; 5] = [8, 2, 0, 0, 0];

/// The file of a picture whose `pixels` are `[height, width, 3]`.
///
/// # Panics
/// When there are more or fewer of them.
pub(super) fn encode(pixels: &[u8], width: u32, height: u32) -> Vec<u8> {
    let row = CHANNELS * width as usize;
    assert_eq!(pixels.len(), row * height as usize, "a picture has as many pixels as its sides say");
    let mut rows = Vec::with_capacity(pixels.len() + height as usize);
    for row in pixels.chunks_exact(row.max(1)) {
        // No filter.
        rows.push(0);
        rows.extend_from_slice(row);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let compressed = encoder.write_all(&rows).and_then(|()| encoder.finish()).expect("memory takes what is written");
    let mut file = SIGNATURE.to_vec();
    chunk(&mut file, b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &FORMAT].concat());
    chunk(&mut file, b"IDAT", &compressed);
    chunk(&mut file, b"IEND", &[]);
    file
}

/// Length, name, content, and the checksum of the latter two.
fn chunk(file: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).expect("a picture has less than 4 GiB");
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend_from_slice(name);
    file.extend_from_slice(content);
    let checksum = crc32fast::hash(&file[start..]);
    file.extend(checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn the_pixels_come_back_out_of_chunks_whose_checksums_are_right() {
        let (width, height) = (5, 3);
        let pixels: Vec<u8> = (0..45).map(|i| i * 5).collect();
        let file = encode(&pixels, width, height);
        let mut rest = file.strip_prefix(SIGNATURE).unwrap();
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (named, behind) = rest[4..].split_at(4 + length);
            assert_eq!(behind[..4], crc32fast::hash(named).to_be_bytes());
            chunks.push(named.split_at(4));
            rest = &behind[4..];
        }
        assert_eq!(chunks.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [b"IHDR", b"IDAT", b"IEND"]);
        assert_eq!(chunks[0].1, [0, 0, 0, 5, 0, 0, 0, 3, 8, 2, 0, 0, 0]);
        let mut rows = Vec::new();
        ZlibDecoder::new(chunks[1].1).read_to_end(&mut rows).unwrap();
        assert_eq!(rows.len(), 3 * 16);
        let found: Vec<u8> = rows.chunks_exact(16).flat_map(|row| row[1..].to_vec()).collect();
        assert!(rows.iter().step_by(16).all(|&filter| filter == 0) && found == pixels);
    }
}
