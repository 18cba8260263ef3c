//! Reads files that a user names. Refuses anything but a regular file of limited size before reading it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::written;

/// The text of the file at `path`, of at most `most` bytes.
///
/// # Errors
/// The mistake in words, to follow the path: `cannot be read: …`, `got a directory; must be a file`.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, String> {
    as_text(bytes(path, most)?)
}

/// The text that a file's bytes are.
///
/// # Errors
/// They are not UTF-8, or compressed.
pub(crate) fn as_text(bytes: Vec<u8>) -> Result<String, String> {
    // RFC 1952 §2.3.1
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err("compressed by gzip; must be unpacked, as text".into());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("not UTF-8 text (byte {at})")
    })
}

/// The bytes of the file at `path`, of at most `most`.
///
/// # Errors
/// As for [`text`].
pub(crate) fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    // Check the type before opening: opening a FIFO without a writer would block forever.
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        let kind = if found.is_dir() {
            "a directory"
        } else {
            "a device, a pipe or a socket"
        };
        return Err(format!("got {kind}; must be a file"));
    }
    if found.len() > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    // Files in /proc report no length, and others may grow meanwhile.
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

/// The error for a file of more than `most` bytes.
pub(crate) fn too_large(most: u64) -> String {
    let most = written::bytes(most);
    format!("got more than \"{most}\"; must be at most that")
}
