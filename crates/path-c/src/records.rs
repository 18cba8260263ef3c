//! Structs that cross the border, and how they do.

use std::mem;

/// A struct of the ABI: plain numbers, the first of which is its size.
///
/// # Safety
/// The type is `repr(C)`, begins with a `usize` that is its size in bytes, and any bytes are a value of it.
pub unsafe trait Record: Copy {
    /// Its size in the first version of the ABI; callers may not have less.
    const LEAST: usize;
}

/// A packet to send.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sojourn_packet {
    /// sizeof(struct sojourn_packet).
    pub size: usize,
    /// The caller's own number for it, such as an index or a pointer; it comes back with the delivery.
    pub user: u64,
    /// Bytes on the link, all headers included; above 0.
    pub bytes: u32,
    /// The sending host: an IPv4 address, or any number of its own.
    pub source: u32,
    /// The receiving host, likewise.
    pub destination: u32,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The IP protocol: 17 UDP, 6 TCP.
    pub protocol: u8,
    /// SOJOURN_NOT_ECT, SOJOURN_ECT0, SOJOURN_ECT1 or SOJOURN_CE: the bits of the IP header.
    pub ecn: u8,
    /// The DiffServ code point, 0 to 63.
    pub dscp: u8,
    /// SOJOURN_DOWN or SOJOURN_UP.
    pub way: u8,
}

/// A packet that has arrived. Instants are nanoseconds since the path's beginning.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sojourn_delivery {
    /// sizeof(struct sojourn_delivery).
    pub size: usize,
    /// The caller's number for it. A duplicate arrives with the same number.
    pub user: u64,
    /// The path's number for it, counted from 0.
    pub number: u64,
    /// When it arrived.
    pub at_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// The time that it spent in the link's queue.
    pub sojourn_ns: u64,
    /// Bytes on the link.
    pub bytes: u32,
    /// The ECN field as it arrived.
    pub ecn: u8,
    /// The DiffServ code point.
    pub dscp: u8,
    /// Its direction.
    pub way: u8,
    /// 1 if it was damaged in propagation and is delivered nevertheless.
    pub damaged: u8,
}

/// What happened to a packet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sojourn_event {
    /// sizeof(struct sojourn_event).
    pub size: usize,
    /// When, in nanoseconds since the path's beginning.
    pub at_ns: u64,
    /// The path's number for the packet.
    pub number: u64,
    /// With SOJOURN_LEFT, the time that it spent in the queue; otherwise 0.
    pub sojourn_ns: u64,
    /// The packet's direction.
    pub way: u8,
    /// SOJOURN_ARRIVED, SOJOURN_MARKED, SOJOURN_DROPPED, SOJOURN_LEFT, SOJOURN_LOST or SOJOURN_DUPLICATED.
    pub verdict: u8,
    /// With SOJOURN_DROPPED, SOJOURN_DROPPED_AQM or SOJOURN_DROPPED_OVERFLOW; otherwise 0.
    pub reason: u8,
}

/// Packets of a direction: sent + duplicated = delivered + dropped + lost + those under way.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sojourn_counts {
    /// sizeof(struct sojourn_counts).
    pub size: usize,
    /// Sent.
    pub sent: u64,
    /// Delivered, polled or not.
    pub delivered: u64,
    /// Dropped by the discipline.
    pub dropped: u64,
    /// Marked by it.
    pub marked: u64,
    /// Lost in propagation.
    pub lost: u64,
    /// Copies made in propagation.
    pub duplicated: u64,
}

// SAFETY: it is repr(C), its first field is its size, all fields are integers.
unsafe impl Record for sojourn_packet {
    const LEAST: usize = 40;
}

// SAFETY: as above.
unsafe impl Record for sojourn_delivery {
    const LEAST: usize = 56;
}

// SAFETY: as above.
unsafe impl Record for sojourn_event {
    const LEAST: usize = 40;
}

// SAFETY: as above.
unsafe impl Record for sojourn_counts {
    const LEAST: usize = 56;
}

/// The size that a caller gives for its struct, if it is enough.
///
/// # Safety
/// `record` is null, or points to at least a `usize`.
pub unsafe fn size<R: Record>(record: *const R) -> Result<usize, String> {
    let name = std::any::type_name::<R>()
        .rsplit("::")
        .next()
        .unwrap_or_default();
    if record.is_null() {
        return Err(format!("{name}: got NULL"));
    }
    // SAFETY: it is not null, so by the caller's promise there is a `usize`; it may lie anywhere.
    let size = unsafe { record.cast::<usize>().read_unaligned() };
    if size < R::LEAST {
        return Err(format!(
            "{name}: got size {size}; must be sizeof(struct {name}), at least {}",
            R::LEAST
        ));
    }
    Ok(size)
}

/// Reads a caller's struct. Fields that it does not have are 0.
///
/// # Safety
/// `record` is null, or points to as many readable bytes as its first field says.
pub unsafe fn read<R: Record>(record: *const R) -> Result<R, String> {
    // SAFETY: the caller promises so.
    let size = unsafe { size(record) }?;
    let mut own = mem::MaybeUninit::<R>::zeroed();
    // SAFETY: both have that many bytes, and they are different objects. Zeros and any bytes are a value of `R`.
    unsafe {
        own.as_mut_ptr()
            .cast::<u8>()
            .copy_from_nonoverlapping(record.cast(), size.min(mem::size_of::<R>()));
        Ok(own.assume_init())
    }
}

/// Writes to a caller's struct the fields that it has; its size stays what it was.
///
/// # Safety
/// `record` is null, or points to as many writable bytes as its first field says.
pub unsafe fn write<R: Record>(record: *mut R, own: &R) -> Result<(), String> {
    // SAFETY: the caller promises so.
    let size = unsafe { size(record) }?;
    let first = mem::size_of::<usize>();
    let from = std::ptr::from_ref(own).cast::<u8>();
    // SAFETY: both have at least `first` bytes and at most that many more; they are different objects. Padding is copied as
    // untyped bytes.
    unsafe {
        let bytes = size.min(mem::size_of::<R>()) - first;
        record
            .cast::<u8>()
            .add(first)
            .copy_from_nonoverlapping(from.add(first), bytes);
    }
    Ok(())
}
