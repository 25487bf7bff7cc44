//! Reads zip archives by PKWARE's APPNOTE, as strictly as a reader can.

use crate::accounts::FolderContents;

/// Returns the entries of an archive without compression: files with their bytes, folders with `None`. Each
/// must be described alike in both of its headers, and its bytes must have its checksum.
pub fn unzipped(archive: &[u8]) -> FolderContents {
    let end = archive.len().checked_sub(22).expect("the end of the central directory");
    assert_eq!(u32_at(archive, end), 0x0605_4b50, "an archive without a comment");
    let (count, directory) = (u16_at(archive, end + 10), u32_at(archive, end + 16));
    let mut entries = FolderContents::new();
    let mut at = directory;
    for _ in 0..count {
        assert_eq!(u32_at(archive, at), 0x0201_4b50);
        let [name_len, extra_len] = [at + 28, at + 30].map(|at| u16_at(archive, at));
        let name = String::from_utf8(archive[at + 46..][..name_len].to_vec()).expect("UTF-8");
        let [crc, size, local] = [at + 16, at + 24, at + 42].map(|at| u32_at(archive, at));
        assert_eq!(u32_at(archive, local), 0x0403_4b50, "{name}");
        assert_eq!(&archive[local + 30..][..name_len], name.as_bytes());
        // The version, flags, method and time.
        assert_eq!(archive[local + 4..local + 14], archive[at + 6..at + 16], "{name}");
        assert_eq!(u16_at(archive, at + 8) & 0x800, 0x800, "{name} is marked as UTF-8");
        let bytes = &archive[local + 30 + name_len + u16_at(archive, local + 28)..][..size];
        assert_eq!(crc32(bytes), crc, "{name}");
        let is_folder = name.ends_with('/');
        entries.insert(name.trim_end_matches('/').to_owned(), (!is_folder).then(|| bytes.to_vec()));
        at += 46 + name_len + extra_len;
    }
    assert_eq!(at, end, "nothing is between the directory and its end");
    assert_eq!(entries.len(), count, "each name is there once");
    entries
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn crc32(bytes: &[u8]) -> usize {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let crc =
        bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)));
    !crc as usize
}
