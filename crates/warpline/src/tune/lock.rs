//! One process tunes a key at a time, and says who it is.
//!
//! The operating system's lock on a file; the text in it says who has it, and
//! is of no other use. A process that ends, however it ends, has given it back.

use fs4::{FileExt, TryLockError};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// A lock, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a file, which is made where it is missing. Where
    /// another has it, `held` is told who, and it is waited for.
    pub(super) fn take(path: &Path, held: impl FnOnce(&str)) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut tell = Some(held);
        loop {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            match FileExt::try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    if let Some(tell) = tell.take() {
                        tell(&holder(&mut file));
                    }
                    FileExt::lock(&file)?;
                }
                Err(TryLockError::Error(e)) => return Err(e),
            }
            // Whoever had it before may have removed the file meanwhile.
            if same(&file, path) {
                let mut lock = Self(file);
                lock.sign(&me())?;
                return Ok(lock);
            }
        }
    }

    /// Removes the file of a lock that nobody has.
    pub(super) fn remove(path: &Path) {
        let free = File::open(path).is_ok_and(|file| match FileExt::try_lock(&file) {
            Ok(()) => fs::remove_file(path).is_ok(),
            Err(_) => false,
        });
        tracing::debug!(path = %path.display(), free, "a lock that may be removed");
    }

    fn sign(&mut self, text: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(text.as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Both happen anyway when the file is closed; nobody is told where they fail.
        let _ = self.sign("");
        let _ = FileExt::unlock(&self.0);
    }
}

/// Is the open file the one of that name?
#[cfg(unix)]
fn same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |m: fs::Metadata| (m.dev(), m.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => number(open) == number(named),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Who has the lock, as it wrote down itself.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(500).read_to_string(&mut text);
    match text.trim() {
        who if read.is_ok() && !who.is_empty() => who.to_owned(),
        _ => "a process that has not said its name yet".into(),
    }
}

/// This process.
fn me() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "this machine",
        name => name,
    };
    format!(
        "process {} on {host}, since {}",
        std::process::id(),
        super::time::now()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{env, io::BufRead, io::BufReader};

    const CHILD: &str = "WARPLINE_TEST_HOLDS_LOCK";

    #[test]
    fn a_waiter_is_told_which_process_holds_the_lock_and_gets_it_when_that_ends() {
        if let Some(path) = env::var_os(CHILD) {
            let lock = Lock::take(Path::new(&path), |_| {}).unwrap();
            println!("held");
            // Until the parent has seen enough; then it ends without a word.
            let _ = io::stdin().read(&mut [0]);
            std::mem::forget(lock);
            std::process::exit(0);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/softmax.lock");
        let name = "a_waiter_is_told_which_process_holds_the_lock_and_gets_it_when_that_ends";
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                &format!("tune::lock::tests::{name}"),
                "--nocapture",
            ])
            .env(CHILD, &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        while !said.next().unwrap().unwrap().contains("held") {}

        let mut told = String::new();
        let lock = Lock::take(&path, |holder| {
            told = holder.to_owned();
            drop(child.stdin.take());
        });
        let lock = lock.unwrap();
        let start = format!("process {} on ", child.id());
        assert!(
            told.starts_with(&start) && told.contains(", since 20"),
            "{told}"
        );
        let own = fs::read_to_string(&path).unwrap();
        assert!(
            own.starts_with(&format!("process {} on ", std::process::id())),
            "{own}"
        );
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        child.wait().unwrap();
    }

    #[test]
    fn one_has_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, busy) = (folder.path().join("x.lock"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = Lock::take(&path, |_| {}).unwrap();
                        assert!(!busy.swap(true, Ordering::SeqCst));
                        Lock::remove(&path);
                        busy.store(false, Ordering::SeqCst);
                    }
                });
            }
        });
        Lock::remove(&path);
        assert!(!path.exists());
    }
}
