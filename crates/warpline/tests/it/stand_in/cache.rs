//! Kernels are compiled once: in a process, and from one process to the next.

use crate::stand_in::harness::{calls, compilations, cubins, with_driver};
use crate::stand_in::zeros::{moving, plan, work};
use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use warpline::{Device, LoadOptions, Origin, prepare};

fn device() -> Device {
    Device::cuda(0).unwrap()
}

/// The one file in the folder of the cubins.
fn file() -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(cubins()).unwrap().collect();
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
                    let ready = plan.load(&Device::cuda(0).unwrap()).unwrap();
                    assert_eq!(ready.jits(), usize::from(n == 1));
                }
            });
            assert_eq!(count, 1);
        },
    );
}

#[test]
fn threads_that_ask_at_once_compile_once() {
    with_driver("cache::threads_that_ask_at_once_compile_once", "", || {
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
fn each_device_has_its_own_kernels_and_they_share_the_disk() {
    with_driver(
        "cache::each_device_has_its_own_kernels_and_they_share_the_disk",
        "devices=2",
        || {
            let [first, second] = [0, 1].map(|i| Device::cuda(i).unwrap());
            let origin = |device: &Device| plan(device).load(device).unwrap().origins().next();
            assert_eq!(origin(&first), Some(Origin::Compiled));
            assert_eq!(origin(&second), Some(Origin::Disk));
            assert_eq!(origin(&first), Some(Origin::Process));
            assert_eq!(origin(&second), Some(Origin::Process));
        },
    );
}

#[test]
fn what_the_process_lost_comes_from_disk() {
    with_driver("cache::what_the_process_lost_comes_from_disk", "", || {
        let (_, called) = calls(|| {
            let device = device();
            assert_eq!(plan(&device).load(&device).unwrap().jits(), 1);
        });
        assert!(
            called.contains("cuLibraryUnload"),
            "the last one out takes it along"
        );
        let count = compilations(|| {
            let device = device();
            let ready = plan(&device).load(&device).unwrap();
            assert_eq!(ready.origins().collect::<Vec<_>>(), [Origin::Disk]);
            assert!(ready.times().jit > std::time::Duration::ZERO);
        });
        assert_eq!(count, 0);
    });
}

#[test]
fn a_kernel_in_use_outlives_its_device() {
    with_driver("cache::a_kernel_in_use_outlives_its_device", "", || {
        let device = device();
        let ready = plan(&device).load(&device).unwrap();
        let (_, called) = calls(|| drop(device));
        assert!(!called.contains("cuLibraryUnload"), "{called}");
        let (_, called) = calls(|| drop(ready));
        assert!(
            called.ends_with("cuLibraryUnload\ncuDevicePrimaryCtxRelease_v2\n"),
            "{called}"
        );
    });
}

#[test]
fn a_file_that_is_not_what_it_should_be_is_made_again() {
    with_driver(
        "cache::a_file_that_is_not_what_it_should_be_is_made_again",
        "",
        || {
            let load = || {
                let device = device();
                plan(&device).load(&device).unwrap().origins().next()
            };
            load();
            let good = fs::read(file()).unwrap();
            let mut flipped = good.clone();
            *flipped.last_mut().unwrap() ^= 1;
            let cut = good[..good.len() / 2].to_vec();
            for bad in [flipped, cut, Vec::new(), b"something else".to_vec()] {
                fs::write(file(), bad).unwrap();
                assert_eq!(load(), Some(Origin::Compiled));
                assert_eq!(fs::read(file()).unwrap(), good, "it was replaced");
                assert_eq!(load(), Some(Origin::Disk));
            }
            let path = file();
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            assert_eq!(load(), Some(Origin::Compiled), "a folder is no file");
        },
    );
}

#[test]
fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
    with_driver(
        "cache::a_folder_that_cannot_be_written_costs_nothing_but_time",
        "",
        || {
            fs::write(cubins(), "no folder").unwrap();
            for _ in 0..2 {
                let device = device();
                assert_eq!(plan(&device).load(&device).unwrap().jits(), 1);
            }
        },
    );
}

#[test]
fn a_kernel_that_moves_registers_is_loaded_whole_and_any_other_is_linked() {
    with_driver(
        "cache::a_kernel_that_moves_registers_is_loaded_whole_and_any_other_is_linked",
        "",
        || {
            let device = device();
            let mut strict = LoadOptions::default();
            strict.strict = true;
            let moving = prepare(&moving(&device), &device.target()).unwrap();
            // The stand-in's linker ignores setmaxnreg, as the driver's does.
            let (ready, called) = calls(|| moving.load_with(&device, &strict).unwrap());
            assert_eq!(ready.origins().collect::<Vec<_>>(), [Origin::CompiledWhole]);
            assert_eq!(ready.jits(), 1);
            assert!(!called.contains("cuLink"), "{called}");
            assert!(!cubins().exists(), "nothing of it is kept");
            let again = moving.load_with(&device, &strict).unwrap();
            assert_eq!(again.origins().collect::<Vec<_>>(), [Origin::Process]);

            let (ready, called) = calls(|| plan(&device).load_with(&device, &strict).unwrap());
            assert_eq!(ready.origins().collect::<Vec<_>>(), [Origin::Compiled]);
            assert!(called.contains("cuLinkAddData_v2"), "{called}");
        },
    );
}

#[test]
fn what_is_said_of_a_kernel_loaded_whole_is_heard() {
    with_driver(
        "cache::what_is_said_of_a_kernel_loaded_whole_is_heard",
        "serialized=999",
        || {
            let device = device();
            let mut strict = LoadOptions::default();
            strict.strict = true;
            let moving = prepare(&moving(&device), &device.target()).unwrap();
            let refused = moving.load_with(&device, &strict).unwrap_err();
            assert_eq!(refused.code(), "jit-advisory");
        },
    );
}
