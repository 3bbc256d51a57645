//! The checks that every change must pass, cheapest first.

use std::process::Command;
use std::time::Instant;

use crate::beside::Beside;
use crate::house::{self, Mode};
use crate::step::{StepResult, cargo, root, step, target_dir, toolchain_cargo};

/// The `rust-version` of the workspace.
pub(crate) const MINIMUM_RUST: &str = "1.90";

/// Runs the steps until one fails, and the named client tests. The steps of `checks` run concurrently with the
/// tests and then with the clients, which leave processors idle while they wait. The checks yield to both, which take
/// longer.
pub(crate) fn run(clients: &[&str]) -> StepResult {
    let start = Instant::now();
    step("format", &mut cargo(["fmt", "--all", "--check"]))?;
    println!("==> house: cargo xtask house");
    house::run(Mode::Check)?;
    let has_c_compiler = has_c_compiler();
    let features = features(has_c_compiler);
    let clippy = ["clippy", "--workspace", "--all-targets", "--features", features];
    step("clippy", cargo(clippy).args(["--", "--deny", "warnings"]))?;
    let checks = Beside::start("checks", yielding_checks()?)?;
    let tests = test(has_c_compiler).and_then(|()| run_clients(clients));
    // If both fail, the error names the tests, and the output shows the other failure.
    tests.and(checks.end())?;
    println!("==> all of it: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs the steps that depend on no other step. Steps that share a directory of artifacts with the tests
/// come last, because they wait for the tests' compilation.
pub(crate) fn checks() -> StepResult {
    minimum_rust(&["-p", "terrane"])?;
    crate::platforms::check()?;
    crate::checkers::loom()?;
    crate::package::check()?;
    crate::cost::run(crate::cost::Mode::CheckEngine)?;
    crate::mutants::run_quick()?;
    let doc = ["doc", "--workspace", "--no-deps", "--features", features(has_c_compiler())];
    step("doc", cargo(doc).env("RUSTDOCFLAGS", "--deny warnings"))
}

/// Runs client tests with the command that the tests have built.
fn run_clients(names: &[&str]) -> StepResult {
    if names.is_empty() {
        return Ok(());
    }
    crate::clients::run(names, Some(&target_dir().join("debug/terrane")))
}

/// Returns the features of the lints and of the documentation, which share the dependencies that are checked
/// with the same features.
fn features(has_c_compiler: bool) -> &'static str {
    if has_c_compiler {
        "terrane/async,terrane/micro,terrane/serde,terrane/tracing,terrane-tests/zstd,terrane-cli/tls"
    } else {
        "terrane/async,terrane/micro,terrane/serde,terrane/tracing"
    }
}

/// Returns the command that runs `checks` with the lowest priority. Tests that yield in loops would otherwise give
/// most of their time to it.
fn yielding_checks() -> Result<Command, String> {
    let this = std::env::current_exe().map_err(|error| format!("checks: {error}"))?;
    let mut command = if cfg!(unix) { Command::new("nice") } else { Command::new(&this) };
    if cfg!(unix) {
        command.args(["-n", "19"]).arg(&this);
    }
    command.arg("checks");
    Ok(command)
}

/// Checks the comparison with other engines, without the engines that need more than Rust. Only a
/// release includes it, because it compiles the dependencies once more.
pub(crate) fn compare() -> StepResult {
    let manifest = ["clippy", "--manifest-path", "compare/Cargo.toml", "--no-default-features"];
    let mut command =
        cargo(manifest.into_iter().chain(["--all-targets", "--", "--deny", "warnings"]));
    command.env("CARGO_TARGET_DIR", root().join("target/compare"));
    step("clippy of compare", &mut command)
}

/// Checks packages with the oldest supported toolchain: in CI the engine, for a release all of the workspace. In our
/// own code, `clippy::incompatible_msrv` also finds uses of a newer standard library.
pub(crate) fn minimum_rust(packages: &[&str]) -> StepResult {
    if !has_minimum_rust() {
        println!(
            "==> minimum Rust SKIPPED: Rust {MINIMUM_RUST} is not installed and cannot be; \
             run 'rustup toolchain install {MINIMUM_RUST} --profile minimal'"
        );
        return Ok(());
    }
    let mut command = toolchain_cargo(MINIMUM_RUST, ".", ["check"]);
    command.args(packages);
    command.env("CARGO_TARGET_DIR", root().join("target/minimum-rust"));
    step("minimum Rust", &mut command)
}

pub(crate) fn has_minimum_rust() -> bool {
    let runs = || {
        let mut probe = toolchain_cargo(MINIMUM_RUST, ".", ["--version"]);
        probe.output().is_ok_and(|output| output.status.success())
    };
    let install = ["toolchain", "install", MINIMUM_RUST, "--profile", "minimal"];
    // `rustup run` may install a missing toolchain by itself, or refuse to.
    runs() || (Command::new("rustup").args(install).output().is_ok() && runs())
}

/// Runs the tests. The features that need a C compiler are tested with the workspace if one is installed, which
/// takes less than another build; the step for the minimum Rust checks the build without them. The client tests get
/// a command with both.
fn test(has_c_compiler: bool) -> StepResult {
    let mut workspace = cargo(["test", "--workspace"]);
    if !has_c_compiler {
        step("test", &mut workspace)?;
        println!("==> features tls, zstd SKIPPED: no C compiler found; install one, or set CC");
        return Ok(());
    }
    step("test", workspace.args(["--features", "terrane-tests/zstd,terrane-cli/tls"]))
}

/// Returns true if a C compiler is installed, which the features `zstd` and `tls` need. All other steps
/// need only Rust.
fn has_c_compiler() -> bool {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let found = Command::new(compiler).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}
