//! Child processes whose output is shown as it comes.

use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs `command` with this process' output; an error unless it succeeds.
pub(crate) fn shown(command: Command) -> Result<()> {
    shown_as(&name(&command), command)
}

/// As [`shown`], under a shorter name in errors.
pub(crate) fn shown_as(name: &str, mut command: Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("`{name}` does not start"))?;
    succeeded(name, status)
}

/// As [`shown`], and hands each line of its output to `on_line`.
pub(crate) fn scanned(command: Command, on_line: impl FnMut(&str)) -> Result<()> {
    copied(command, &mut io::stdout().lock(), on_line)
}

fn copied(mut command: Command, to: &mut impl Write, mut on_line: impl FnMut(&str)) -> Result<()> {
    let name = name(&command);
    // One pipe for both streams keeps their order.
    let (mut reader, writer) = io::pipe().context("no pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("no pipe")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("`{name}` does not start"))?;
    // The command holds the writing ends; without this the pipe never ends.
    drop(command);
    let copied = copy_lines(&mut reader, to, &mut on_line);
    let status = child.wait().with_context(|| format!("`{name}` is lost"))?;
    copied.with_context(|| format!("the output of `{name}` is lost"))?;
    succeeded(&name, status)
}

fn succeeded(name: &str, status: ExitStatus) -> Result<()> {
    ensure!(status.success(), "`{name}` failed: {status}");
    Ok(())
}

/// The command as one would type it, with the program's file name alone.
fn name(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Copies bytes as they come, and hands on each line once it is whole.
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
    fn lines_are_whole_and_the_copy_is_exact() {
        let text = format!("first\n{}\nno end", "x".repeat(20_000));
        let (mut copy, mut lines) = (Vec::new(), Vec::new());
        let mut on_line = |line: &str| lines.push(line.to_owned());
        copy_lines(&mut text.as_bytes(), &mut copy, &mut on_line).unwrap();
        assert_eq!(copy, text.as_bytes());
        assert_eq!(lines, text.lines().collect::<Vec<_>>());
    }

    #[test]
    fn both_streams_are_scanned_in_order_and_failure_is_told() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let (mut copy, mut lines) = (Vec::new(), Vec::new());
        let on_line = |line: &str| lines.push(line.to_owned());
        let error = copied(command, &mut copy, on_line).unwrap_err();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(copy, b"one\ntwo\nthree\n");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
