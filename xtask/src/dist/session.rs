//! Writes, reads and serves a database with an installed command, without an environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::tool::{bare, expect, output};

/// How long the server may take to answer or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Uses a database below `dir` and returns a summary.
pub(super) fn run(program: &Path, version: &str, dir: &Path) -> Result<String, String> {
    expect(&output(bare(program, dir).arg("--version"))?, &format!("terrane {version}"))?;
    let shell = |line: &str| output(bare(program, dir).args(["shell", "db", "-c", line]));
    shell("put apple red")?;
    expect(&shell("get apple")?, "red")?;
    output(bare(program, dir).args(["verify", "db"]))?;
    serve(program, dir)?;
    expect(&shell("get pear")?, "green")?;
    Ok("printed its version, wrote, read, verified and served without an environment".into())
}

/// Serves the database, and writes to it as a client of Redis.
fn serve(program: &Path, dir: &Path) -> Result<(), String> {
    let mut command = bare(program, dir);
    command.args(["serve", "db", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut server = command.spawn().map_err(|error| format!("terrane serve: {error}"))?;
    let talked = talk(&mut server);
    if talked.is_err() {
        let _ = server.kill();
    }
    let status = server.wait().map_err(|error| format!("terrane serve: {error}"))?;
    talked?;
    if status.success() { Ok(()) } else { Err(format!("terrane serve: {status}")) }
}

fn talk(server: &mut Child) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("terrane serve: {error}");
    let stdout = server.stdout.take().ok_or("terrane serve: no output")?;
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let address =
        lines.filter_map(|line| line.strip_prefix("listening ").map(|rest| rest.trim().to_owned()));
    let address = address.into_iter().next().ok_or("terrane serve: no address")?;
    let mut client = TcpStream::connect(&address).map_err(fail)?;
    client.set_read_timeout(Some(PATIENCE)).map_err(fail)?;
    client.write_all(b"PING\r\nSET pear green\r\nGET apple\r\nSHUTDOWN\r\n").map_err(fail)?;
    let mut answers = String::new();
    client.read_to_string(&mut answers).map_err(fail)?;
    expect(&answers, "+PONG\r\n+OK\r\n$3\r\nred\r\n")
}
