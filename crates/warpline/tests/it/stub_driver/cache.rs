//! The kernel cache: kernels are compiled once per process, and processes share cubins on disk.

use crate::stub_driver::harness::{cache_dir, calls, compilations, with_driver};
use crate::stub_driver::zeros::{plan, with_setmaxnreg, work};
use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use warpline::{CodeOrigin, Device, LoadOptions, prepare};

fn device() -> Device {
    Device::cuda(0).unwrap()
}

/// Returns the only file in the cache directory.
fn cubin_file() -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(cache_dir()).unwrap().collect();
    assert_eq!(files.len(), 1);
    files.remove(0).unwrap().path()
}

#[test]
fn a_kernel_is_compiled_once_for_all_extents() {
    with_driver(
        "cache::a_kernel_is_compiled_once_for_all_extents",
        "",
        || {
            let device = device();
            let count = compilations(|| {
                for n in 1..=100 {
                    let plan = prepare(&work(n, &device), &device.target()).unwrap();
                    let loaded = plan.load(&Device::cuda(0).unwrap()).unwrap();
                    assert_eq!(loaded.jits(), usize::from(n == 1));
                }
            });
            assert_eq!(count, 1);
        },
    );
}

#[test]
fn concurrent_threads_compile_once() {
    with_driver("cache::concurrent_threads_compile_once", "", || {
        let device = device();
        let plan = plan(&device);
        let start = Barrier::new(8);
        let count = compilations(|| {
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        plan.load(&device).unwrap();
                    });
                }
            });
        });
        assert_eq!(count, 1);
    });
}

#[test]
fn devices_share_cubins_on_disk() {
    with_driver("cache::devices_share_cubins_on_disk", "devices=2", || {
        let [first, second] = [0, 1].map(|i| Device::cuda(i).unwrap());
        let origin = |device: &Device| plan(device).load(device).unwrap().origins().next();
        assert_eq!(origin(&first), Some(CodeOrigin::Compiled));
        assert_eq!(origin(&second), Some(CodeOrigin::Disk));
        assert_eq!(origin(&first), Some(CodeOrigin::Process));
        assert_eq!(origin(&second), Some(CodeOrigin::Process));
    });
}

#[test]
fn an_unloaded_kernel_is_read_from_disk() {
    with_driver("cache::an_unloaded_kernel_is_read_from_disk", "", || {
        let (_, called) = calls(|| {
            let device = device();
            assert_eq!(plan(&device).load(&device).unwrap().jits(), 1);
        });
        assert!(
            called.contains("cuLibraryUnload"),
            "the last handle unloads the kernels"
        );
        let count = compilations(|| {
            let device = device();
            let loaded = plan(&device).load(&device).unwrap();
            assert_eq!(loaded.origins().collect::<Vec<_>>(), [CodeOrigin::Disk]);
            assert!(loaded.times().jit > std::time::Duration::ZERO);
        });
        assert_eq!(count, 0);
    });
}

#[test]
fn a_loaded_plan_outlives_its_device_handle() {
    with_driver(
        "cache::a_loaded_plan_outlives_its_device_handle",
        "",
        || {
            let device = device();
            let loaded = plan(&device).load(&device).unwrap();
            let (_, called) = calls(|| drop(device));
            assert!(!called.contains("cuLibraryUnload"), "{called}");
            let (_, called) = calls(|| drop(loaded));
            assert!(
                called.ends_with("cuLibraryUnload\ncuDevicePrimaryCtxRelease_v2\n"),
                "{called}"
            );
        },
    );
}

#[test]
fn an_invalid_file_is_compiled_again() {
    with_driver("cache::an_invalid_file_is_compiled_again", "", || {
        let load = || {
            let device = device();
            plan(&device).load(&device).unwrap().origins().next()
        };
        load();
        let valid = fs::read(cubin_file()).unwrap();
        let mut flipped = valid.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let truncated = valid[..valid.len() / 2].to_vec();
        for bad in [flipped, truncated, Vec::new(), b"something else".to_vec()] {
            fs::write(cubin_file(), bad).unwrap();
            assert_eq!(load(), Some(CodeOrigin::Compiled));
            assert_eq!(fs::read(cubin_file()).unwrap(), valid, "it is replaced");
            assert_eq!(load(), Some(CodeOrigin::Disk));
        }
        let path = cubin_file();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(load(), Some(CodeOrigin::Compiled), "a folder is not a file");
    });
}

#[test]
fn without_a_writable_folder_every_process_compiles() {
    with_driver(
        "cache::without_a_writable_folder_every_process_compiles",
        "",
        || {
            fs::write(cache_dir(), "no folder").unwrap();
            for _ in 0..2 {
                let device = device();
                assert_eq!(plan(&device).load(&device).unwrap().jits(), 1);
            }
        },
    );
}

#[test]
fn a_kernel_with_setmaxnreg_is_compiled_as_a_whole_program() {
    with_driver(
        "cache::a_kernel_with_setmaxnreg_is_compiled_as_a_whole_program",
        "",
        || {
            let device = device();
            let mut strict = LoadOptions::default();
            strict.strict = true;
            let plan_with_setmaxnreg =
                prepare(&with_setmaxnreg(&device), &device.target()).unwrap();
            // The linker of the stub ignores setmaxnreg, as the driver's does.
            let (loaded, called) =
                calls(|| plan_with_setmaxnreg.load_with(&device, &strict).unwrap());
            assert_eq!(
                loaded.origins().collect::<Vec<_>>(),
                [CodeOrigin::CompiledWhole]
            );
            assert_eq!(loaded.jits(), 1);
            assert!(!called.contains("cuLink"), "{called}");
            assert!(!cache_dir().exists(), "it has no cubin");
            let again = plan_with_setmaxnreg.load_with(&device, &strict).unwrap();
            assert_eq!(again.origins().collect::<Vec<_>>(), [CodeOrigin::Process]);

            let (loaded, called) = calls(|| plan(&device).load_with(&device, &strict).unwrap());
            assert_eq!(loaded.origins().collect::<Vec<_>>(), [CodeOrigin::Compiled]);
            assert!(called.contains("cuLinkAddData_v2"), "{called}");
        },
    );
}

#[test]
fn advisories_of_a_whole_program_are_reported() {
    with_driver(
        "cache::advisories_of_a_whole_program_are_reported",
        "serialized=999",
        || {
            let device = device();
            let mut strict = LoadOptions::default();
            strict.strict = true;
            let plan_with_setmaxnreg =
                prepare(&with_setmaxnreg(&device), &device.target()).unwrap();
            let error = plan_with_setmaxnreg
                .load_with(&device, &strict)
                .unwrap_err();
            assert_eq!(error.code(), "jit-advisory");
        },
    );
}
