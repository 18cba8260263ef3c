//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian: a section, its interfaces, packets.

use alloc::vec::Vec;

use sojourn_units::Time;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Timestamps count nanoseconds: 10 to the power of -9.
const NANOSECONDS: u8 = 9;

/// A section header, and an interface for each name.
pub fn head(interfaces: &[&str]) -> Vec<u8> {
    let mut file = Vec::new();
    block(&mut file, SECTION_HEADER, |body| {
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend(1_u16.to_le_bytes()); // major version
        body.extend(0_u16.to_le_bytes()); // minor version
        body.extend(u64::MAX.to_le_bytes()); // length of the section: not given
    });
    for name in interfaces {
        block(&mut file, INTERFACE, |body| {
            body.extend(ETHERNET.to_le_bytes());
            body.extend([0; 2]);
            body.extend(0_u32.to_le_bytes()); // no limit on the captured length of a packet
            option(body, IF_NAME, name.as_bytes());
            option(body, IF_TSRESOL, &[NANOSECONDS]);
            option(body, 0, &[]);
        });
    }
    file
}

/// Appends a packet of `length` bytes, of which `frame` was captured.
pub fn packet(file: &mut Vec<u8>, interface: u32, at: Time, frame: &[u8], length: u32) {
    let nanos = at.as_nanos();
    block(file, ENHANCED_PACKET, |body| {
        body.extend(interface.to_le_bytes());
        body.extend(((nanos >> 32) as u32).to_le_bytes());
        body.extend((nanos as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(length.to_le_bytes());
        padded(body, frame);
    });
}

/// Appends a block: its type, and its length before and after the body. `write` must append a multiple of four bytes.
fn block(file: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = file.len();
    file.extend(kind.to_le_bytes());
    file.extend([0; 4]);
    write(file);
    let length = (file.len() - begin + 4) as u32;
    file[begin + 4..begin + 8].copy_from_slice(&length.to_le_bytes());
    file.extend(length.to_le_bytes());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    padded(body, value);
}

fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(core::iter::repeat_n(
        0,
        bytes.len().next_multiple_of(4) - bytes.len(),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_their_length_at_both_ends() {
        let mut file = head(&["down", "up"]);
        packet(
            &mut file,
            1,
            Time::from_nanos((3 << 32) + 5),
            &[0xaa; 5],
            1514,
        );
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        let (mut at, mut kinds) = (0, Vec::new());
        while at < file.len() {
            let length = word(at + 4) as usize;
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(
            kinds,
            [SECTION_HEADER, INTERFACE, INTERFACE, ENHANCED_PACKET]
        );
        // 12 bytes of framing, 20 of fields, 5 captured and 3 of padding.
        let last = file.len() - 40;
        let fields: Vec<u32> = (0..5).map(|n| word(last + 8 + 4 * n)).collect();
        assert_eq!(fields, [1, 3, 5, 5, 1514]);
        assert_eq!(
            file[last + 28..last + 36],
            [0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0, 0, 0]
        );
    }
}
