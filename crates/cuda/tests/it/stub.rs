//! The stub driver: compiled once, one copy of the library per test, so that tests share neither
//! log nor configuration.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::{Library, Symbol};
use warpline_cuda::{CudaError, Driver};

/// Compiles the stub into `path`.
pub(crate) fn compile(path: &Path, flags: &[&str]) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stub/driver.c");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
        .arg(path)
        .args(flags)
        .arg(source)
        .output()
        .expect("these tests need a C compiler named cc");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Returns a temporary path private to this process.
pub(crate) fn temporary_path(name: &str) -> PathBuf {
    let name = format!("stub-{}-{name}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// One instance of the stub.
pub(crate) struct Stub {
    path: PathBuf,
    dylib: Library,
}

impl Stub {
    pub(crate) fn new(config: &str) -> Self {
        static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let image = IMAGE.get_or_init(|| {
            let path = temporary_path("first.so");
            compile(&path, &[]);
            let image = std::fs::read(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            image
        });
        let path = temporary_path(&format!("{}.so", COUNT.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&path, image).unwrap();
        // SAFETY: our own dylib, whose initializer reads one variable.
        let dylib = unsafe { Library::new(&path) }.unwrap();
        let stub = Self { path, dylib };
        stub.configure(config);
        stub
    }

    pub(crate) fn configure(&self, config: &str) {
        let config = CString::new(config).unwrap();
        // SAFETY: the signature is that of the C file.
        unsafe {
            let function: Symbol<'_, unsafe extern "C" fn(*const c_char)> =
                self.dylib.get("stub_configure").unwrap();
            function(config.as_ptr());
        }
    }

    /// Opens this instance as the driver.
    pub(crate) fn driver(&self) -> Result<&'static Driver, CudaError> {
        Driver::open(&self.path)
    }

    /// Returns all calls so far, except context pushes and pops.
    pub(crate) fn calls(&self) -> String {
        // SAFETY: as above; a NUL-terminated text in static memory.
        unsafe {
            let function: Symbol<'_, unsafe extern "C" fn() -> *const c_char> =
                self.dylib.get("stub_calls").unwrap();
            CStr::from_ptr(function()).to_str().unwrap().to_owned()
        }
    }

    /// Returns the number of objects that were created and not released.
    pub(crate) fn live_objects(&self) -> i32 {
        self.number("stub_live")
    }

    /// Returns the depth of this thread's context stack.
    pub(crate) fn context_depth(&self) -> i32 {
        self.number("stub_depth")
    }

    fn number(&self, name: &str) -> i32 {
        // SAFETY: as above.
        unsafe {
            let function: Symbol<'_, unsafe extern "C" fn() -> c_int> =
                self.dylib.get(name).unwrap();
            function()
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
