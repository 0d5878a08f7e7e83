//! Runs child processes and streams their output.

use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs `command` with the output of this process; fails unless it succeeds.
pub(crate) fn run(command: Command) -> Result<()> {
    run_as(&name(&command), command)
}

/// Runs a command like [`run`], with another name in errors.
pub(crate) fn run_as(name: &str, command: Command) -> Result<()> {
    require_success(name, status(name, command)?)
}

/// Runs a command and returns whether it succeeds; an error if it cannot start.
pub(crate) fn succeeds(name: &str, command: Command) -> Result<bool> {
    Ok(status(name, command)?.success())
}

fn status(name: &str, mut command: Command) -> Result<ExitStatus> {
    command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run `{name}`"))
}

/// Runs a command like [`run`], and calls `on_line` with each line of its output.
pub(crate) fn run_with_lines(command: Command, on_line: impl FnMut(&str)) -> Result<()> {
    copy_output(command, &mut io::stdout().lock(), on_line)
}

fn copy_output(
    mut command: Command,
    to: &mut impl Write,
    mut on_line: impl FnMut(&str),
) -> Result<()> {
    let name = name(&command);
    // One pipe for both streams keeps their order.
    let (mut reader, writer) = io::pipe().context("cannot create a pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("cannot create a pipe")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run `{name}`"))?;
    // The command holds the write ends; the reader sees no end of file before they are dropped.
    drop(command);
    let copied = copy_lines(&mut reader, to, &mut on_line);
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for `{name}`"))?;
    copied.with_context(|| format!("cannot read the output of `{name}`"))?;
    require_success(&name, status)
}

fn require_success(name: &str, status: ExitStatus) -> Result<()> {
    ensure!(status.success(), "`{name}` failed: {status}");
    Ok(())
}

/// Formats a command as a command line, with the program's file name only.
fn name(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Copies bytes as they arrive, and calls `on_line` with each complete line.
fn copy_lines(
    from: &mut impl Read,
    to: &mut impl Write,
    on_line: &mut impl FnMut(&str),
) -> io::Result<()> {
    let mut chunk = [0; 8192];
    let mut line = Vec::new();
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => &chunk[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(read)?;
        to.flush()?;
        for piece in read.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                on_line(String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        on_line(String::from_utf8_lossy(&line).trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_complete_and_the_copy_is_exact() {
        let text = format!("first\n{}\nno end", "x".repeat(20_000));
        let (mut copy, mut lines) = (Vec::new(), Vec::new());
        let mut on_line = |line: &str| lines.push(line.to_owned());
        copy_lines(&mut text.as_bytes(), &mut copy, &mut on_line).unwrap();
        assert_eq!(copy, text.as_bytes());
        assert_eq!(lines, text.lines().collect::<Vec<_>>());
    }

    #[test]
    fn both_streams_are_read_in_order_and_failure_is_reported() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let (mut copy, mut lines) = (Vec::new(), Vec::new());
        let on_line = |line: &str| lines.push(line.to_owned());
        let error = copy_output(command, &mut copy, on_line).unwrap_err();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(copy, b"one\ntwo\nthree\n");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
