/// The Internet checksum (RFC 1071) of bytes, of which the last may stand alone. `also` is added to their sum, such as that of
/// a pseudo-header.
pub fn internet_checksum(bytes: &[u8], also: u32) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let mut sum = bytes.chunks(2).map(word).sum::<u32>() + also;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 §3: the words 0001, f203, f4f5, f6f7 add up to 2ddf0, folded ddf2; its complement is 220d.
    #[test]
    fn it_is_that_of_the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&bytes, 0), 0x220d);
        assert_eq!(internet_checksum(&bytes[2..], 1), 0x220d);
        // A last byte alone is the high one of its word: ddf2 and 0100 add up to def2.
        let odd = [&bytes[..], &[1]].concat();
        assert_eq!(internet_checksum(&odd, 0), !0xdef2);
    }

    /// The example of a header whose checksum is b861 in many textbooks: 115 bytes from 192.168.0.1 to 192.168.0.199.
    #[test]
    fn it_is_that_of_a_header_whose_own_field_is_zero() {
        let mut header = [0; 20];
        header[..10].copy_from_slice(&[0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11]);
        header[12..].copy_from_slice(&[192, 168, 0, 1, 192, 168, 0, 199]);
        assert_eq!(internet_checksum(&header, 0), 0xb861);
    }
}
