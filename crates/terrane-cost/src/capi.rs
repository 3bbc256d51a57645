//! The operations of the C interface.
#![allow(unsafe_code, reason = "C functions")]

use std::ffi::{CString, c_void};
use std::hint::black_box;
use std::mem::MaybeUninit;

use terrane::Db;
use terrane_c::{
    terrane_db, terrane_default_keyspace, terrane_free, terrane_get, terrane_keyspace,
    terrane_open, terrane_put, terrane_value_data, terrane_value_free,
};

use crate::data::{VALUE, key};
use crate::operation::{Outcome, operation};

const REPEATED: u64 = 4_000;

/// Measures all operations. Their bytes are those of a database that is not used.
pub(crate) fn measure() -> Outcome {
    let dir = tempfile::tempdir()?;
    let other = Db::open(dir.path().join("other"))?;
    let db = open(&dir.path().join("c"))?;
    let keyspace = terrane_default_keyspace(Some(&db)).ok_or("no keyspace")?;
    let operations = [operation!(put, REPEATED), operation!(get, REPEATED)];
    operations.iter().try_for_each(|operation| operation.measure(keyspace, &other))?;
    terrane_free(Some(db));
    Ok(())
}

fn open(dir: &std::path::Path) -> Result<Box<terrane_db>, Box<dyn std::error::Error>> {
    let path = CString::new(dir.to_str().ok_or("the path is not UTF-8")?)?;
    let (mut db, mut error) = (MaybeUninit::new(None), MaybeUninit::uninit());
    // SAFETY: the path ends with NUL.
    unsafe { terrane_open(path.as_ptr(), None, Some(&mut db), Some(&mut error)) };
    // SAFETY: it was created with a value.
    unsafe { db.assume_init() }.ok_or_else(|| "the database did not open".into())
}

fn data(bytes: &[u8]) -> (*const c_void, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

#[inline(never)]
fn put(keyspace: &terrane_keyspace) -> Outcome {
    for number in 0..REPEATED {
        let key = key(number);
        let ((key, key_len), (value, value_len)) = (data(&key), data(&VALUE));
        let mut error = MaybeUninit::uninit();
        let error = Some(&mut error);
        // SAFETY: key and value are readable.
        let code =
            unsafe { terrane_put(Some(keyspace), None, key, key_len, value, value_len, error) };
        if code != 0 {
            return Err(format!("terrane_put returned {code}").into());
        }
    }
    Ok(())
}

#[inline(never)]
fn get(keyspace: &terrane_keyspace) -> Outcome {
    for number in 0..REPEATED {
        let key = key(number);
        let (key, key_len) = data(&key);
        let (mut error, mut value) = (MaybeUninit::uninit(), MaybeUninit::new(None));
        let out = (Some(&mut value), Some(&mut error));
        // SAFETY: the key is readable.
        let code = unsafe { terrane_get(Some(keyspace), key, key_len, out.0, out.1) };
        // SAFETY: it was created with a value.
        let value = unsafe { value.assume_init() };
        if code != 0 || value.is_none() {
            return Err(format!("terrane_get returned {code}").into());
        }
        let mut len = MaybeUninit::new(0);
        black_box(terrane_value_data(value.as_deref(), Some(&mut len)));
        terrane_value_free(value);
    }
    Ok(())
}
