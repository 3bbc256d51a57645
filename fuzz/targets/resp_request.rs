#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrane_server::fuzz::request(bytes));
