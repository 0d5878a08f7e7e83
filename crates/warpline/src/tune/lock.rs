//! File locks: one process tunes a key at a time.
//!
//! The operating system locks a file whose text names the holder. It releases the lock when the
//! process ends, even after a crash.

use fs4::{FileExt, TryLockError};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Acquires the lock of a file and creates the file if it is missing. If another process holds
    /// the lock, calls `on_wait` with its name and waits.
    pub(super) fn acquire(path: &Path, on_wait: impl FnOnce(&str)) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut on_wait = Some(on_wait);
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
                    if let Some(on_wait) = on_wait.take() {
                        on_wait(&holder(&mut file));
                    }
                    FileExt::lock(&file)?;
                }
                Err(TryLockError::Error(e)) => return Err(e),
            }
            // The previous holder may have removed the file.
            if is_same_file(&file, path) {
                let mut lock = Self(file);
                lock.write_holder(&this_process())?;
                return Ok(lock);
            }
        }
    }

    /// Removes the file of a lock that no process holds.
    pub(super) fn remove(path: &Path) {
        let removed = File::open(path).is_ok_and(|file| match FileExt::try_lock(&file) {
            Ok(()) => fs::remove_file(path).is_ok(),
            Err(_) => false,
        });
        tracing::debug!(path = %path.display(), removed, "tried to remove a lock file");
    }

    fn write_holder(&mut self, text: &str) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(text.as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file releases the lock even if these calls fail.
        let _ = self.write_holder("");
        let _ = FileExt::unlock(&self.0);
    }
}

/// Returns whether the open file is the one at this path.
#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |m: fs::Metadata| (m.dev(), m.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => id(open) == id(named),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Returns the name that the holder wrote into the file.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(500).read_to_string(&mut text);
    match text.trim() {
        name if read.is_ok() && !name.is_empty() => name.to_owned(),
        _ => "an unnamed process".into(),
    }
}

/// Returns the name of this process for the lock file.
fn this_process() -> String {
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
    fn a_waiter_learns_the_holder_and_acquires_the_lock_when_it_exits() {
        if let Some(path) = env::var_os(CHILD) {
            let lock = Lock::acquire(Path::new(&path), |_| {}).unwrap();
            println!("held");
            // Holds the lock until the parent closes stdin, then exits without releasing it.
            let _ = io::stdin().read(&mut [0]);
            std::mem::forget(lock);
            std::process::exit(0);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/softmax.lock");
        let name = "a_waiter_learns_the_holder_and_acquires_the_lock_when_it_exits";
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
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().contains("held") {}

        let mut reported = String::new();
        let lock = Lock::acquire(&path, |holder| {
            reported = holder.to_owned();
            drop(child.stdin.take());
        });
        let lock = lock.unwrap();
        let start = format!("process {} on ", child.id());
        assert!(
            reported.starts_with(&start) && reported.contains(", since 20"),
            "{reported}"
        );
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with(&format!("process {} on ", std::process::id())),
            "{text}"
        );
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        child.wait().unwrap();
    }

    #[test]
    fn one_thread_holds_the_lock_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, busy) = (folder.path().join("x.lock"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = Lock::acquire(&path, |_| {}).unwrap();
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
