//! Versions of the library and of its ABI.

use std::ffi::c_char;

/// The version of the ABI that this header describes; see terrane_abi_version.
pub const TERRANE_ABI_VERSION: u32 = 1;

/// Returns the version of the library, such as "0.1.0". The string is constant.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the version of the ABI of the library. A program that was compiled with TERRANE_ABI_VERSION n runs
/// with every library that returns n. Functions and codes are added without a new version; none is removed,
/// and none changes its parameters.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_abi_version() -> u32 {
    TERRANE_ABI_VERSION
}
