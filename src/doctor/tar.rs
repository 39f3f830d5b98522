//! A tar archive (POSIX.1-1988 ustar) of a few small files.

/// One block, in bytes.
const BLOCK: usize = 512;

/// An archive of `files`, each with an ASCII name of at most 100 bytes; `now` is in seconds since 1970.
pub(super) fn archive(files: &[(&str, String)], now: i64) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, text) in files {
        archive.extend_from_slice(&header(name, text.len(), now));
        archive.extend_from_slice(text.as_bytes());
        pad(&mut archive);
    }
    // The end: two blocks of zeros.
    archive.extend_from_slice(&[0; 2 * BLOCK]);
    archive
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

fn header(name: &str, size: usize, now: i64) -> Vec<u8> {
    let head = [
        field(name, 100),
        field("0000644", 8),
        field("0000000", 8),
        field("0000000", 8),
        field(&format!("{size:011o}"), 12),
        field(&format!("{:011o}", now.max(0)), 12),
    ];
    let tail = [field("0", 1), field("", 100), field("ustar", 6), field("00", 2)];
    // The sum counts its own field as eight spaces.
    let bytes = head.iter().chain(&tail).flatten();
    let sum = bytes.fold(8 * 32, |sum: u32, &byte| sum.saturating_add(u32::from(byte)));
    let mut header: Vec<u8> = head.concat();
    header.extend_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend(tail.concat());
    pad(&mut header);
    header
}

/// A text, cut or filled up with zeros to `length`.
fn field(text: &str, length: usize) -> Vec<u8> {
    let mut field: Vec<u8> = text.bytes().take(length).collect();
    field.resize(length, 0);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_a_header_with_its_sum_for_each_file_and_two_blocks_at_its_end() {
        let archive = archive(&[("a.txt", "hello".to_owned()), ("b", "x".repeat(512))], 1_800_000_000);
        assert_eq!(archive.len(), 6 * BLOCK);
        assert_eq!(&archive[..6], b"a.txt\0");
        assert_eq!(&archive[124..136], b"00000000005\0");
        assert_eq!(&archive[257..265], b"ustar\x0000");
        assert_eq!(&archive[BLOCK..BLOCK + 6], b"hello\0");
        assert_eq!(&archive[2 * BLOCK..2 * BLOCK + 2], b"b\0");
        let mut unsummed = archive[..BLOCK].to_vec();
        unsummed[148..156].fill(b' ');
        let sum: u32 = unsummed.iter().map(|&byte| u32::from(byte)).sum();
        assert_eq!(&archive[148..156], format!("{sum:06o}\0 ").as_bytes());
        assert!(archive[4 * BLOCK..].iter().all(|&byte| byte == 0));
    }
}
