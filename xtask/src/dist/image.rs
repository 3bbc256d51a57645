//! The container image, with the command of the archive instead of one that the build compiles.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::command::unpacked;
use super::place::{Place, copy, write};
use crate::report::{Made, Stop};
use crate::step::root;
use crate::tool::{expect, output, require, show};

/// How long the container may take to be healthy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns Docker's name of a processor.
fn architecture(target: &str) -> Result<&'static str, Stop> {
    match target {
        "x86_64-unknown-linux-gnu" => Ok("amd64"),
        "aarch64-unknown-linux-gnu" => Ok("arm64"),
        _ => Err(Stop::Skipped(format!(
            "an image has Linux, and {target} does not; run it on Linux"
        ))),
    }
}

fn tag(place: &Place) -> String {
    format!("terrane:{}", place.version)
}

/// Builds the image: the directory `programs/ARCHITECTURE/terrane` stands for the stage `build` of the
/// Containerfile, which would compile the command.
pub(super) fn make(place: &Place) -> Made {
    let architecture = architecture(&place.target)?;
    require("docker", "install Docker with buildx")?;
    let is_up = Command::new("docker").arg("info").output();
    if !is_up.is_ok_and(|output| output.status.success()) {
        return Err(Stop::Skipped(
            "no Docker daemon: start it (dockerd, or Docker Desktop)".into(),
        ));
    }
    let program = unpacked(place, "image")?.join("bin/terrane");
    let programs = place.fresh("image-programs")?;
    copy(&program, &programs.join(format!("programs/{architecture}/terrane")))?;
    let mut build = Command::new("docker");
    build.args([
        "buildx",
        "build",
        "--load",
        "--file",
        "packaging/Containerfile",
        "--build-context",
    ]);
    build.arg(format!("build={}", programs.display())).args(["--tag", &tag(place), "."]);
    show(build.current_dir(root()))?;
    Ok(tag(place))
}

/// Runs a container until its health check passes, stops it as `docker stop` does, and reads its data
/// with a second container.
pub(super) fn try_out(place: &Place) -> Made {
    let dir = place.fresh("image-used")?;
    let volume = format!("terrane-release-{}", std::process::id());
    let used = serve(place, &volume, &dir);
    let _ = Command::new("docker").args(["volume", "rm", "--force", &volume]).output();
    used
}

fn serve(place: &Place, volume: &str, dir: &Path) -> Made {
    let users = dir.join("users");
    write(&users, "app s3cret write:*\n")?;
    let mount = format!("{volume}:/data");
    let users = format!("{}:/users:ro", users.display());
    let mut run = Command::new("docker");
    run.args(["run", "--detach", "--health-interval=1s", "--volume", &mount, "--volume", &users]);
    let container = output(run.args([&tag(place), "--users", "/users"]))?.trim().to_owned();
    let healthy = wait_until_healthy(&container);
    let stopped = output(Command::new("docker").args(["stop", "--time=60", &container]));
    let logs = output(Command::new("docker").args(["logs", &container]));
    let _ = Command::new("docker").args(["rm", "--force", &container]).output();
    healthy.map_err(|error| format!("{error}: {}", logs.unwrap_or_default()))?;
    stopped?;
    let mut verify = Command::new("docker");
    verify.args(["run", "--rm", "--volume", &mount, "--entrypoint", "/usr/bin/terrane"]);
    output(verify.args([&tag(place), "verify", "/data/db"]))?;
    Ok("became healthy, stopped, and left a database that verifies".into())
}

fn wait_until_healthy(container: &str) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let mut inspect = Command::new("docker");
        inspect.args(["inspect", "--format", "{{.State.Health.Status}}", container]);
        let state = output(&mut inspect)?;
        if state.trim() == "healthy" {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return expect(&state, "healthy");
        }
        sleep(Duration::from_secs(1));
    }
}
