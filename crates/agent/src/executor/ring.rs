//! The kernel's trace ring buffer in the format of `trace_pipe_raw`: pages of events, whose fields are at the offsets
//! listed in their `format` files.
//!
//! Source: Documentation/trace/ring-buffer-design.rst, and the `events/header_page` and `events/header_event` files.

/// A tracepoint event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Its time by the trace clock.
    pub time_ns: u64,
    /// Its record.
    pub data: &'a [u8],
}

/// A page that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageError {
    /// Events before this page were overwritten.
    Lost,
    /// The page is inconsistent.
    Malformed,
}

/// Offset of a page's data, after its time stamp and its length.
pub const PAGE_HEAD: usize = 16;
/// Flag in the length: events were lost before this page.
const MISSED: u64 = 1 << 31;
/// The bits of the length itself.
const LENGTH: u64 = (1 << 20) - 1;
/// Types of entries without data, from this one on.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time difference in an entry's head.
const DELTA_BITS: u32 = 27;

/// Calls `visit` for every entry of a page.
///
/// # Errors
/// Events were lost before it, or it is malformed.
pub fn read_page(page: &[u8], visit: &mut impl FnMut(Entry<'_>)) -> Result<(), PageError> {
    let mut time_ns = u64_at(page, 0)?;
    let length = u64_at(page, 8)?;
    if length & MISSED != 0 {
        return Err(PageError::Lost);
    }
    let end = PAGE_HEAD + (length & LENGTH) as usize;
    let mut rest = page.get(PAGE_HEAD..end).ok_or(PageError::Malformed)?;
    while !rest.is_empty() {
        let head = u32_at(rest, 0)?;
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let size = match kind {
            PADDING if delta == 0 => return Ok(()),
            TIME_EXTEND | TIME_STAMP => 8,
            // The entry's own length precedes the data.
            0 | PADDING => 4 + u32_at(rest, 4)? as usize,
            words => 4 + 4 * words as usize,
        };
        match kind {
            TIME_EXTEND => time_ns += (u64::from(u32_at(rest, 4)?) << DELTA_BITS) + delta,
            TIME_STAMP => {
                // Its 59 bits omit the highest bits of the clock.
                let stamp = (u64::from(u32_at(rest, 4)?) << DELTA_BITS) + delta;
                time_ns = (time_ns & (31 << 59)) | stamp;
            }
            PADDING => time_ns += delta,
            _ => {
                time_ns += delta;
                let from = if kind == 0 { 8 } else { 4 };
                let data = rest.get(from..size).ok_or(PageError::Malformed)?;
                visit(Entry { time_ns, data });
            }
        }
        rest = rest.get(size..).ok_or(PageError::Malformed)?;
    }
    Ok(())
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, PageError> {
    field::<8>(bytes, at)
        .map(u64::from_le_bytes)
        .ok_or(PageError::Malformed)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, PageError> {
    field::<4>(bytes, at)
        .map(u32::from_le_bytes)
        .ok_or(PageError::Malformed)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A field of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Finds field `name` in the text of an event's `format` file.
    pub fn find(format: &str, name: &str) -> Option<Self> {
        format.lines().find_map(|line| {
            let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            // The last word; an array's length follows its name.
            let declared = declared.rsplit([' ', '*']).next()?.split('[').next()?;
            if declared != name {
                return None;
            }
            let number = |key: &str| -> Option<usize> {
                let (_, after) = rest.split_once(key)?;
                after.split(';').next()?.trim().parse().ok()
            };
            Some(Self {
                offset: number("offset:")?,
                size: number("size:")?,
            })
        })
    }

    /// The field as a number, if the record contains it.
    pub fn number(self, data: &[u8]) -> Option<u64> {
        let bytes = data.get(self.offset..self.offset.checked_add(self.size)?)?;
        (bytes.len() <= 8).then(|| {
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| (number << 8) | u64::from(*byte))
        })
    }

    /// The text that the field refers to: `__data_loc`, with the length in the upper half and the offset in the lower.
    pub fn text(self, data: &[u8]) -> Option<&str> {
        let location = self.number(data)?;
        let (offset, length) = (
            (location & 0xffff) as usize,
            (location >> 16 & 0xffff) as usize,
        );
        let bytes = data.get(offset..offset.checked_add(length)?)?;
        std::str::from_utf8(bytes)
            .ok()
            .map(|text| text.trim_end_matches('\0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: net_dev_queue\nID: 1472\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int len;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n";

    /// A page with a time stamp and entries.
    fn page(stamp: u64, entries: &[&[u8]]) -> Vec<u8> {
        let data = entries.concat();
        let mut page = stamp.to_le_bytes().to_vec();
        page.extend((data.len() as u64).to_le_bytes());
        page.extend(data);
        page
    }

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        (delta << 5 | kind).to_le_bytes()
    }

    fn read(page: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, PageError> {
        let mut seen = Vec::new();
        read_page(page, &mut |entry| {
            seen.push((entry.time_ns, entry.data.to_vec()))
        })?;
        Ok(seen)
    }

    #[test]
    fn times_add_up_from_the_page_on() {
        // 1000, + 5, + (2 << 27) + 7 = 268435463 of an extension, + 1.
        let small = [&head(1, 5)[..], &[1, 2, 3, 4]].concat();
        let extend = [&head(30, 7)[..], &2_u32.to_le_bytes()].concat();
        let large = [&head(0, 1)[..], &8_u32.to_le_bytes(), &[9, 9, 9, 9]].concat();
        assert_eq!(
            read(&page(1000, &[&small, &extend, &large])),
            Ok(vec![
                (1005, vec![1, 2, 3, 4]),
                (1005 + 268_435_463 + 1, vec![9, 9, 9, 9])
            ])
        );
    }

    #[test]
    fn padding_without_a_difference_ends_a_page() {
        let rest = [&head(29, 0)[..], &[0xff; 40]].concat();
        let one = [&head(1, 0)[..], &[0; 4]].concat();
        assert_eq!(read(&page(7, &[&one, &rest])), Ok(vec![(7, vec![0; 4])]));
    }

    #[test]
    fn lost_events_are_noticed() {
        let mut lost = page(0, &[]);
        lost[8..16].copy_from_slice(&MISSED.to_le_bytes());
        assert_eq!(read(&lost), Err(PageError::Lost));
    }

    #[test]
    fn a_page_cut_short_is_malformed() {
        let entry = [&head(2, 0)[..], &[0; 8]].concat();
        let whole = page(0, &[&entry]);
        for length in 0..whole.len() {
            assert_eq!(
                read(&whole[..length]),
                Err(PageError::Malformed),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn fields_are_found_by_name_and_read() {
        let mut record = vec![0; 24];
        record[8..16].copy_from_slice(&0xffff_8880_0123_4567_u64.to_le_bytes());
        record[16..20].copy_from_slice(&1514_u32.to_le_bytes());
        record[20..24].copy_from_slice(&(3 << 16 | 24_u32).to_le_bytes());
        record.extend(b"b0\0");
        let field = |name| Field::find(FORMAT, name);
        assert_eq!(
            field("skbaddr").unwrap().number(&record),
            Some(0xffff_8880_0123_4567)
        );
        assert_eq!(field("len").unwrap().number(&record), Some(1514));
        assert_eq!(field("name").unwrap().text(&record), Some("b0"));
        assert_eq!(field("reason"), None);
    }
}
