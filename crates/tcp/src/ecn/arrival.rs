//! How segments arrive: the codepoint of each, the payload bytes by codepoint, and the size of the option that reports them.

/// The ECN codepoint with which a segment arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Not ECN-capable.
    NotEct,
    /// ECN-capable, unmarked, with ECT(0).
    Ect0,
    /// The same with ECT(1), which asks for L4S (RFC 9331).
    Ect1,
    /// Marked.
    Ce,
}

/// Payload bytes by the codepoint with which they arrived, from 0 on. The option carries the last 24 bits; in it the
/// counters of ECT(0) and ECT(1) begin at 1.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EcnBytes {
    /// With ECT(1), CE and ECT(0): the order of the fields.
    pub fields: [u32; 3],
}

impl EcnBytes {
    /// Counts an arrival. Returns the number of fields that the option needs to tell of it.
    pub(crate) const fn count(&mut self, ecn: Arrival, bytes: u32) -> u8 {
        let field = match ecn {
            Arrival::NotEct => return 0,
            Arrival::Ect1 => 0,
            Arrival::Ce => 1,
            Arrival::Ect0 => 2,
        };
        if bytes == 0 {
            return 0;
        }
        self.fields[field] = self.fields[field].wrapping_add(bytes);
        field as u8 + 1
    }

    /// The fields as they stand in the option.
    pub fn on_the_wire(&self) -> [u32; 3] {
        let [ect1, marked, ect0] = self.fields;
        [ect1.wrapping_add(1), marked, ect0.wrapping_add(1)].map(|field| field & 0xff_ffff)
    }
}

/// Bytes of a whole option with its padding. They come off the payload of a full segment, beside the timestamps.
pub(crate) const OPTION_BYTES: u16 = 12;

/// Bytes of an option of so many fields with its padding, or what it adds beside SACK blocks, whose padding it may fill.
pub(crate) const fn option_bytes(fields: u8, has_blocks: bool) -> u32 {
    match (fields, has_blocks) {
        (3.., _) => OPTION_BYTES as u32,
        (2, _) | (1, false) => 8,
        (1, true) | (0, false) => 4,
        (0, true) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768 §3.2.3, figure 5: with order 1 the fields are ECT(1), CE and ECT(0); §3.2.1: those of ECT begin at 1.
    #[test]
    fn the_fields_are_ect1_ce_and_ect0() {
        let mut bytes = EcnBytes::default();
        assert_eq!(bytes.on_the_wire(), [1, 0, 1]);
        assert_eq!(bytes.count(Arrival::Ect1, 100), 1);
        assert_eq!(bytes.count(Arrival::Ce, 20), 2);
        assert_eq!(bytes.count(Arrival::Ect0, 3), 3);
        assert_eq!(bytes.count(Arrival::NotEct, 1000), 0);
        assert_eq!(bytes.count(Arrival::Ce, 0), 0, "a pure acknowledgement");
        assert_eq!(bytes.on_the_wire(), [101, 20, 4]);
        bytes.count(Arrival::Ce, 0xff_ffff);
        assert_eq!(bytes.on_the_wire(), [101, 19, 4], "24 bits");
    }
}
