//! The cost of the C interface: the same puts, lookups and scans through Rust and through C, alternately, in one
//! process. `cargo bench -p terrane-capi` prints nanoseconds per operation, the median of the rounds.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for the terminal")]

use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Instant;

use terrane::Db;
use terrane_c::{
    terrane_db, terrane_default_keyspace, terrane_free, terrane_get, terrane_get_into,
    terrane_iter_free, terrane_iter_key, terrane_iter_next, terrane_iter_range, terrane_iter_value,
    terrane_keyspace, terrane_open, terrane_put, terrane_value_data, terrane_value_free,
};

const KEYS: u32 = 50_000;
const ROUNDS: usize = 15;

fn data(bytes: &[u8]) -> (*const c_void, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// Returns the keys in a mixed order.
fn keys() -> impl Iterator<Item = [u8; 8]> {
    (0..KEYS).map(|number| {
        let mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed % u64::from(KEYS)).to_be_bytes()
    })
}

/// Returns the nanoseconds per key of one pass.
fn pass(mut operation: impl FnMut(&[u8])) -> f64 {
    let begin = Instant::now();
    for key in keys() {
        operation(&key);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(KEYS)
}

fn c_put(keyspace: &terrane_keyspace, key: &[u8], value: &[u8]) {
    let ((key, key_len), (value, value_len)) = (data(key), data(value));
    let mut error = MaybeUninit::uninit();
    let error = Some(&mut error);
    // SAFETY: key and value are readable.
    let code = unsafe { terrane_put(Some(keyspace), None, key, key_len, value, value_len, error) };
    assert_eq!(code, 0);
}

fn c_get(keyspace: &terrane_keyspace, key: &[u8]) -> usize {
    let (key, key_len) = data(key);
    let mut error = MaybeUninit::uninit();
    let mut value = MaybeUninit::new(None);
    // SAFETY: the key is readable.
    let code =
        unsafe { terrane_get(Some(keyspace), key, key_len, Some(&mut value), Some(&mut error)) };
    assert_eq!(code, 0);
    // SAFETY: it was created with a value.
    let value = unsafe { value.assume_init() };
    let mut len = MaybeUninit::new(0);
    black_box(terrane_value_data(value.as_deref(), Some(&mut len)));
    terrane_value_free(value);
    // SAFETY: as above.
    unsafe { len.assume_init() }
}

fn c_get_into(keyspace: &terrane_keyspace, key: &[u8], buffer: &mut [u8]) -> usize {
    let (key, key_len) = data(key);
    let mut error = MaybeUninit::uninit();
    let mut len = MaybeUninit::new(0);
    let mut found = MaybeUninit::new(false);
    let (room, capacity) = (buffer.as_mut_ptr().cast(), buffer.len());
    let (len_out, found, error) = (Some(&mut len), Some(&mut found), Some(&mut error));
    // SAFETY: the key is readable, and the buffer writable.
    unsafe {
        terrane_get_into(Some(keyspace), key, key_len, room, capacity, len_out, found, error)
    };
    // SAFETY: it was created with a value.
    unsafe { len.assume_init() }
}

fn c_scan(keyspace: &terrane_keyspace) -> f64 {
    let begin = Instant::now();
    let (mut iter, mut error) = (MaybeUninit::new(None), MaybeUninit::uninit());
    let (none, out) = (ptr::null(), Some(&mut iter));
    // SAFETY: there are no bytes to read.
    unsafe { terrane_iter_range(Some(keyspace), None, none, 0, none, 0, out, Some(&mut error)) };
    // SAFETY: it was created with a value.
    let mut iter = unsafe { iter.assume_init() };
    let mut len = MaybeUninit::new(0);
    while terrane_iter_next(iter.as_deref_mut(), Some(&mut error)) {
        black_box(terrane_iter_key(iter.as_deref(), Some(&mut len)));
        black_box(terrane_iter_value(iter.as_deref(), Some(&mut len)));
    }
    terrane_iter_free(iter);
    begin.elapsed().as_nanos() as f64 / f64::from(KEYS)
}

fn rust_scan(db: &Db) -> f64 {
    let begin = Instant::now();
    let mut iter = db.iter().unwrap();
    while iter.advance().unwrap() {
        black_box((iter.key(), iter.value()));
    }
    begin.elapsed().as_nanos() as f64 / f64::from(KEYS)
}

fn open(dir: &std::path::Path) -> Box<terrane_db> {
    let path = std::ffi::CString::new(dir.to_str().unwrap()).unwrap();
    let mut db = MaybeUninit::new(None);
    let mut error = MaybeUninit::uninit();
    // SAFETY: the path ends with NUL.
    unsafe { terrane_open(path.as_ptr(), None, Some(&mut db), Some(&mut error)) };
    // SAFETY: it was created with a value.
    unsafe { db.assume_init() }.unwrap()
}

fn report(name: &str, mut rounds: Vec<(f64, f64)>) {
    let middle = rounds.len() / 2;
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rust = rounds[middle].0;
    rounds.sort_by(|a, b| a.1.total_cmp(&b.1));
    let c = rounds[middle].1;
    let percent = (c / rust - 1.0) * 100.0;
    println!("{name:<28} {rust:>8.1} {c:>8.1} {:>+8.1} {percent:>+7.1} %", c - rust);
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let (rust_dir, c_dir) = (dir.path().join("rust"), dir.path().join("c"));
    let db = Db::open(&rust_dir).unwrap();
    let handle = open(&c_dir);
    let keyspace = terrane_default_keyspace(Some(&handle)).unwrap();
    println!("{:<28} {:>8} {:>8} {:>8} {:>9}", "ns per operation", "Rust", "C", "more", "more");
    for len in [16, 100] {
        let value = vec![7_u8; len];
        let name = |what: &str| format!("{what}, {len} bytes");
        let rounds = |mut round: Box<dyn FnMut() -> (f64, f64) + '_>| {
            round();
            (0..ROUNDS).map(|_| round()).collect::<Vec<_>>()
        };
        let puts = rounds(Box::new(|| {
            let rust = pass(|key| db.put(key, &value).unwrap());
            (rust, pass(|key| c_put(keyspace, key, &value)))
        }));
        report(&name("put"), puts);
        let gets = rounds(Box::new(|| {
            let rust = pass(|key| assert_eq!(db.get(key).unwrap().unwrap().len(), len));
            (rust, pass(|key| assert_eq!(c_get(keyspace, key), len)))
        }));
        report(&name("get"), gets);
        let mut buffer = [0_u8; 128];
        let copies = rounds(Box::new(|| {
            let rust = pass(|key| {
                let value = db.get(key).unwrap().unwrap();
                buffer[..value.len()].copy_from_slice(&value);
                black_box(&buffer);
            });
            (rust, pass(|key| assert_eq!(c_get_into(keyspace, key, &mut buffer), len)))
        }));
        report(&name("get into a buffer"), copies);
        let scans = rounds(Box::new(|| (rust_scan(&db), c_scan(keyspace))));
        report(&name("scan"), scans);
    }
    terrane_free(Some(handle));
}
