//! Archives of `numpy.savez`: a zip file of arrays, none of them compressed.
//!
//! Sources: APPNOTE.TXT of PKWARE, version 6.3.10, sections 4.3.7 to 4.3.16; NumPy Enhancement Proposal 1 for the arrays.

use serde_json::{Map, Number, Value as Json};

/// The beginning of every zip file with entries.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
/// Bytes of the end of the directory, and the longest comment behind it.
const END_BYTES: usize = 22;
const LONGEST_COMMENT: usize = 65_535;
const ARRAY: &[u8] = b"\x93NUMPY";

/// The arrays of an archive as JSON, by their names, with lists for their dimensions.
///
/// # Errors
/// What is wrong, in words.
pub fn as_json(archive: &[u8]) -> Result<Map<String, Json>, String> {
    let mut arrays = Map::new();
    for (name, content) in entries(archive).ok_or("its directory is damaged")?? {
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let array = array(content).map_err(|what| format!("{name}: {what}"))?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

type Entries<'a> = Vec<(String, &'a [u8])>;

/// The files of an archive. `None`: it is damaged; an error: it is of a kind that is not read.
fn entries(archive: &[u8]) -> Option<Result<Entries<'_>, String>> {
    let last = archive.len().checked_sub(END_BYTES)?;
    let first = last.saturating_sub(LONGEST_COMMENT);
    let end = (first..=last)
        .rev()
        .find(|at| archive[*at..].starts_with(END))?;
    let (count, mut at) = (
        u16_at(archive, end + 10)?,
        u32_at(archive, end + 16)? as usize,
    );
    let mut found = Vec::new();
    for _ in 0..count {
        let entry = archive.get(at..).filter(|rest| rest.starts_with(ENTRY))?;
        let (method, size) = (u16_at(entry, 10)?, u32_at(entry, 20)? as usize);
        let [name, extra, comment] = [28, 30, 32].map(|at| u16_at(entry, at).map(usize::from));
        let (name, extra, comment) = (name?, extra?, comment?);
        let named = String::from_utf8(entry.get(46..46 + name)?.to_vec()).ok()?;
        if method != 0 {
            return Some(Err(format!(
                "{named} is compressed; must be of numpy.savez"
            )));
        }
        // In front of the content are a header again, the name and other fields.
        let local = archive.get(u32_at(entry, 42)? as usize..)?;
        let skipped = 30 + usize::from(u16_at(local, 26)?) + usize::from(u16_at(local, 28)?);
        found.push((named, local.get(skipped..skipped.checked_add(size)?)?));
        at += 46 + name + extra + comment;
    }
    Some(Ok(found))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads an item of an array.
type Read = fn(&[u8]) -> Option<Json>;

/// An array of numbers or texts.
fn array(content: &[u8]) -> Result<Json, String> {
    let whole = || "it is not a whole array".to_owned();
    let rest = content.strip_prefix(ARRAY).ok_or_else(whole)?;
    // Version 1 has a length of two bytes, later ones of four.
    let (length, begin) = match rest.first() {
        Some(1) => (u16_at(rest, 2).map(u32::from), 4),
        Some(2 | 3) => (u32_at(rest, 2), 6),
        _ => (None, 0),
    };
    let end = begin + length.ok_or_else(whole)? as usize;
    let head = rest.get(begin..end).ok_or_else(whole)?;
    let head = std::str::from_utf8(head).map_err(|_| whole())?;
    let of = |key: &str| Some(head.split_once(key)?.1.trim_start_matches([':', ' ']));
    let kind = of("'descr'")
        .and_then(|text| text.split('\'').nth(1))
        .ok_or_else(whole)?;
    let shape = of("'shape'").and_then(|text| text.strip_prefix('(')?.split(')').next());
    let shape = shape
        .ok_or_else(whole)?
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let shape: Result<Vec<usize>, _> = shape.map(str::parse).collect();
    let shape = shape.map_err(|_| whole())?;
    if of("'fortran_order'").is_some_and(|text| text.starts_with("True")) && shape.len() > 1 {
        return Err("it is in Fortran's order; must be in C's: numpy.ascontiguousarray".into());
    }
    let (width, read): (usize, Read) = match kind {
        "<f8" => (8, |bytes| {
            number(f64::from_le_bytes(bytes.try_into().ok()?))
        }),
        "<f4" => (4, |bytes| {
            number(f32::from_le_bytes(bytes.try_into().ok()?).into())
        }),
        "<i8" => (8, |bytes| {
            Some(i64::from_le_bytes(bytes.try_into().ok()?).into())
        }),
        "<i4" => (4, |bytes| {
            Some(i32::from_le_bytes(bytes.try_into().ok()?).into())
        }),
        _ => match kind
            .strip_prefix("<U")
            .and_then(|digits| digits.parse::<usize>().ok())
        {
            Some(letters) if letters > 0 => (letters.saturating_mul(4), text),
            _ => {
                return Err(format!(
                    "it is of kind {kind}; must be of numbers or of texts"
                ));
            }
        },
    };
    let count = shape
        .iter()
        .try_fold(1_usize, |all, size| all.checked_mul(*size));
    let bytes = count
        .and_then(|count| count.checked_mul(width))
        .ok_or_else(whole)?;
    let items = rest[end..]
        .get(..bytes)
        .ok_or_else(whole)?
        .chunks_exact(width);
    let items: Option<Vec<Json>> = items.map(read).collect();
    let mut items = items.ok_or("it has an item that is no finite number or no text")?;
    for size in shape.iter().skip(1).rev().filter(|size| **size > 0) {
        items = items
            .chunks(*size)
            .map(|row| Json::from(row.to_vec()))
            .collect();
    }
    match (shape.is_empty(), items.pop()) {
        (true, Some(only)) => Ok(only),
        (_, last) => Ok(items.into_iter().chain(last).collect()),
    }
}

fn number(value: f64) -> Option<Json> {
    Number::from_f64(value).map(Json::Number)
}

/// A text in UTF-32, with zeros behind it.
fn text(bytes: &[u8]) -> Option<Json> {
    let letters = bytes.chunks_exact(4).map(|four| u32_at(four, 0));
    let letters = letters.take_while(|code| *code != Some(0));
    let text: Option<String> = letters.map(|code| char::from_u32(code?)).collect();
    text.map(Json::String)
}

/// A learned network as the JSON of `weights`, from an archive that has `interval`, `inputs`, `output`, maybe `most`, and of each layer
/// `weights.0`, `bias.0` and so on.
///
/// # Errors
/// What is wrong, in words.
pub fn network(archive: &[u8]) -> Result<Json, String> {
    let mut arrays = as_json(archive)?;
    let mut layers = Vec::new();
    loop {
        let parts = ["weights", "bias"].map(|part| (part, format!("{part}.{}", layers.len())));
        if !layers.is_empty() && !arrays.contains_key(&parts[0].1) {
            break;
        }
        let mut layer = Map::new();
        for (part, name) in parts {
            let array = arrays
                .remove(&name)
                .ok_or_else(|| format!("has no \"{name}\""))?;
            layer.insert(part.into(), array);
        }
        layers.push(Json::Object(layer));
    }
    arrays.insert("layers".into(), layers.into());
    Ok(Json::Object(arrays))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zip file with one entry, as numpy.savez writes it.
    fn archive(name: &str, content: &[u8], method: u16) -> Vec<u8> {
        let name_bytes = (name.len() as u16).to_le_bytes();
        let size = (content.len() as u32).to_le_bytes();
        let mut file = [
            MAGIC,
            &[0; 22],
            &name_bytes,
            &[0; 2],
            name.as_bytes(),
            content,
        ]
        .concat();
        let directory = (file.len() as u32).to_le_bytes();
        let parts = [
            ENTRY,
            &[0; 6],
            &method.to_le_bytes(),
            &[0; 8],
            &size,
            &size,
            &name_bytes,
        ];
        file.extend(parts.concat());
        file.extend([&[0; 16][..], name.as_bytes()].concat());
        file.extend(
            [
                END,
                &[0; 6],
                &1_u16.to_le_bytes(),
                &[0; 4],
                &directory,
                &[0; 2],
            ]
            .concat(),
        );
        file
    }

    fn npy(head: &str, items: &[u8]) -> Vec<u8> {
        let length = (head.len() as u16).to_le_bytes();
        [ARRAY, &[1, 0], &length, head.as_bytes(), items].concat()
    }

    #[test]
    fn arrays_are_lists_of_their_shape() {
        let numbers: Vec<u8> = (0..6).flat_map(|n| f64::from(n).to_le_bytes()).collect();
        let head = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n";
        let found = as_json(&archive("weights.0.npy", &npy(head, &numbers), 0)).unwrap();
        let expected = serde_json::json!({ "weights.0": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] });
        assert_eq!(Json::Object(found), expected);
    }

    #[test]
    fn texts_end_before_their_zeros() {
        let letters: Vec<u8> = ['5', 'm', '\0']
            .iter()
            .flat_map(|one| (*one as u32).to_le_bytes())
            .collect();
        let head = "{'descr': '<U3', 'fortran_order': False, 'shape': (), }\n";
        let found = as_json(&archive("interval.npy", &npy(head, &letters), 0)).unwrap();
        assert_eq!(found["interval"], "5m");
    }

    #[test]
    fn damaged_archives_are_refused() {
        let head = "{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }\n";
        let whole = archive("a.npy", &npy(head, &[0; 72]), 0);
        assert!(as_json(&whole).is_ok());
        for length in 0..whole.len() {
            assert!(as_json(&whole[..length]).is_err(), "{length} bytes");
        }
        let compressed = as_json(&archive("a.npy", &npy(head, &[0; 72]), 8)).unwrap_err();
        assert_eq!(compressed, "a.npy is compressed; must be of numpy.savez");
        let short = as_json(&archive("a.npy", &npy(head, &[0; 71]), 0)).unwrap_err();
        assert_eq!(short, "a: it is not a whole array");
        assert_eq!(network(&whole).unwrap_err(), "has no \"weights.0\"");
    }
}
