//! The functions of the WebAssembly module.
//!
//! The module imports nothing. Its caller calls `reserve` with the length of a request in UTF-8, writes
//! the request to the address that it returns, and calls `answer`, which returns the length of the
//! answer; `address` returns where the answer begins. All three use one buffer.
#![allow(unsafe_code, unreachable_pub, reason = "exported names")]

use std::sync::{Mutex, MutexGuard, PoisonError};

static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn buffer() -> MutexGuard<'static, Vec<u8>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the buffer this long. Returns its address.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(len: usize) -> *mut u8 {
    let mut buffer = buffer();
    buffer.clear();
    buffer.resize(len, 0);
    buffer.as_mut_ptr()
}

/// Replaces the request in the buffer with its answer. Returns the length of the answer.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let request = std::mem::take(&mut *buffer());
    let answer = crate::answer(&String::from_utf8_lossy(&request));
    *buffer() = answer.into_bytes();
    buffer().len()
}

/// Returns the address of the answer.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn address() -> *const u8 {
    buffer().as_ptr()
}
