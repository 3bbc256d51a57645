//! Passes the compiler's version to the program, for the head of its reports.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok();
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok());
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    println!("cargo::rustc-env=COMPARE_RUSTC={}", version.as_deref().unwrap_or("unknown").trim());
    println!("cargo::rustc-env=COMPARE_TARGET_FEATURES={features}");
    println!("cargo::rerun-if-changed=build.rs");
}
