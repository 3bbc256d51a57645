#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrane::fuzz::run("value_file", bytes));
