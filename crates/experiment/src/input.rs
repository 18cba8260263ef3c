//! Files that a user names: what is no regular file, or too large, is refused before it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::written;

/// The text of the file at `path`, of at most `most` bytes.
///
/// # Errors
/// What is wrong, to follow the path: `cannot be read: …`, `got a directory; must be a file`.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    // Before it is opened: a FIFO without a writer would never come back.
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
    // Files of /proc have no length, and others may grow meanwhile.
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(too_large(most));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("not UTF-8 text (byte {at})")
    })
}

/// The error that there are more than `most` bytes.
pub(crate) fn too_large(most: u64) -> String {
    let most = written::bytes(most);
    format!("got more than \"{most}\"; must be at most that")
}
