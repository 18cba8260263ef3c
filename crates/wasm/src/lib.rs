//! The simulator for a page in a browser: a module of WebAssembly with five functions, without generated glue.
//!
//! The host writes a request, as JSON, to the memory at [`sojourn_input`], calls [`sojourn_call`], and reads the reply, as
//! JSON, at [`sojourn_reply`]. What happens to packets is read as numbers at [`sojourn_events`]. There is one laboratory
//! per instance of the module, with at most one run under way; who wants several at once makes several instances.
//! `Request` lists the requests. The reply to each is an object; `error` in it tells a mistake, with its place in the file.

mod answers;
pub mod lab;
mod request;

use std::cell::RefCell;

pub use lab::Lab;

/// The memory that the host and the module share, and the laboratory behind it.
#[derive(Default)]
struct Desk {
    request: Vec<u8>,
    reply: String,
    events: Vec<f64>,
    lab: Lab,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

/// The address of `length` bytes for the next request.
#[expect(unsafe_code, reason = "the name is exported")]
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_input(length: usize) -> *mut u8 {
    DESK.with_borrow_mut(|desk| {
        desk.request.clear();
        desk.request.resize(length, 0);
        desk.request.as_mut_ptr()
    })
}

/// Answers the request. Returns the length of the reply in bytes.
#[expect(unsafe_code, reason = "the name is exported")]
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_call() -> usize {
    DESK.with_borrow_mut(|desk| {
        desk.reply = desk.lab.call(&desk.request);
        desk.reply.len()
    })
}

/// The address of the reply.
#[expect(unsafe_code, reason = "the name is exported")]
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_reply() -> *const u8 {
    DESK.with_borrow(|desk| desk.reply.as_ptr())
}

/// Takes what has happened to packets of the watched run since the last call. Returns the number of values, of 64-bit
/// floating point; [`lab::EVENT_VALUES`] per event.
#[expect(unsafe_code, reason = "the name is exported")]
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_take_events() -> usize {
    DESK.with_borrow_mut(|desk| {
        desk.events.clear();
        desk.lab.take_events(&mut desk.events);
        desk.events.len()
    })
}

/// The address of these values.
#[expect(unsafe_code, reason = "the name is exported")]
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_events() -> *const f64 {
    DESK.with_borrow(|desk| desk.events.as_ptr())
}
