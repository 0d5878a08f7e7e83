//! The grid and the arguments of a launch, for every device.

use crate::machine::{Fault, FaultKind};
use crate::program::{Kernel, ParamKind};
use crate::tensor_map::TensorMapValue;
use crate::types::{Scalar, Type};
use crate::value::ParamId;

/// A launch argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    /// A number.
    Scalar(Type, u64),
    /// An address in global memory.
    Pointer(u64),
    /// A tensor map.
    TensorMap(TensorMapValue),
}

impl Arg {
    /// Returns a scalar argument.
    pub fn scalar<T: Scalar>(x: T) -> Self {
        Arg::Scalar(T::TYPE, x.to_bits())
    }

    /// Returns the kind of argument for messages.
    fn description(&self) -> String {
        match self {
            Arg::Scalar(ty, _) => format!("a value of type {ty}"),
            Arg::Pointer(_) => "a pointer".to_owned(),
            Arg::TensorMap(_) => "a tensor map".to_owned(),
        }
    }
}

impl ParamKind {
    /// Returns the expected argument for messages.
    fn description(&self) -> String {
        match self {
            ParamKind::Scalar(ty) => format!("a value of type {ty}"),
            ParamKind::Pointer(dtype) => format!("a pointer to {dtype} elements"),
            ParamKind::TensorMap(_) => "a tensor map".to_owned(),
        }
    }
}

/// The grid and the arguments of one launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The grid shape in CTAs.
    pub grid: [u32; 3],
    /// The arguments, in the order of the kernel's parameters.
    pub args: Vec<Arg>,
}

impl Launch {
    /// Checks the grid and the arguments against the kernel; the fault states the value and the
    /// rule.
    pub fn check(&self, kernel: &Kernel) -> Result<(), Fault> {
        let reject = |text: String| Err(Fault::new(FaultKind::Launch, text));
        if self.args.len() != kernel.params.len() {
            return reject(format!(
                "kernel {} takes {} arguments, but the launch passes {}",
                kernel.name,
                kernel.params.len(),
                self.args.len()
            ));
        }
        for axis in 0..3 {
            let (g, c) = (self.grid[axis], kernel.cluster[axis]);
            if g == 0 || !g.is_multiple_of(c) {
                return reject(format!(
                    "axis {axis} of the grid has {g} CTAs and clusters of {c}; the grid must be a positive multiple of the cluster"
                ));
            }
        }
        for (p, a) in kernel.params.iter().zip(&self.args) {
            match (&p.kind, a) {
                (ParamKind::Scalar(want), Arg::Scalar(got, value)) if want == got => {
                    p.check(*value)?;
                }
                (ParamKind::Pointer(_), Arg::Pointer(at)) => p.check(*at)?,
                (ParamKind::TensorMap(decl), Arg::TensorMap(map)) => {
                    if *decl != map.decl {
                        return reject(format!(
                            "the tensor map for parameter {} has another box, dtype or swizzle than declared",
                            p.name
                        ));
                    }
                    if let Err(f) = map.check() {
                        return Err(Fault::new(
                            f.kind,
                            format!("tensor map {}: {}", p.name, f.text),
                        ));
                    }
                }
                (kind, arg) => {
                    return reject(format!(
                        "parameter {} takes {}, but the launch passes {}",
                        p.name,
                        kind.description(),
                        arg.description()
                    ));
                }
            }
        }
        kernel.check_limits(|p| self.value(p))
    }

    /// Returns the value of an integer argument.
    fn value(&self, p: ParamId) -> Option<i128> {
        match self.args.get(p.index())? {
            Arg::Scalar(ty, bits) => ty.int_value(*bits),
            _ => None,
        }
    }

    /// Checks the declared extents of a kernel against the buffers of the arguments. `bytes`
    /// returns the bytes from an address to the end of its buffer, or `None` if unknown.
    pub fn check_extents(
        &self,
        kernel: &Kernel,
        bytes: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), Fault> {
        let bytes = |p: ParamId| match self.args.get(p.index())? {
            Arg::Pointer(at) => bytes(*at),
            _ => None,
        };
        kernel.check_extents(|p| self.value(p), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arg, Launch};
    use crate::Kernel;
    use crate::builder::*;

    fn kernel(declare: impl FnOnce(Builder)) -> Kernel {
        Kernel::build("bounds", &crate::Target::SM_90A, |k| {
            declare(k);
            k.role("all").body(|| {});
        })
        .expect("a kernel")
    }

    fn launch(kernel: &Kernel, args: &[Arg]) -> Result<(), String> {
        let launch = Launch {
            grid: [1, 1, 1],
            args: args.to_vec(),
        };
        launch.check(kernel).map_err(|fault| fault.text)
    }

    fn launch_with(kernel: &Kernel, arg: Arg) -> Result<(), String> {
        launch(kernel, &[arg])
    }

    #[test]
    fn launch_below_the_minimum_is_rejected() {
        let kernel = kernel(|k| _ = k.param::<u32>("rounds").at_least(3));
        assert_eq!(launch_with(&kernel, Arg::scalar(3u32)), Ok(()));
        let text = "parameter rounds is 2, but the kernel takes u32 values that are at least 3\n\
                    help: pass a value that is at least 3";
        assert_eq!(
            launch_with(&kernel, Arg::scalar(2u32)),
            Err(text.to_owned())
        );
    }

    #[test]
    fn launch_above_the_maximum_is_rejected() {
        let kernel = kernel(|k| _ = k.param::<u32>("rounds").at_most(7));
        assert_eq!(launch_with(&kernel, Arg::scalar(7u32)), Ok(()));
        let text = "parameter rounds is 8, but the kernel takes u32 values that are at most 7\n\
                    help: pass a value that is at most 7";
        assert_eq!(
            launch_with(&kernel, Arg::scalar(8u32)),
            Err(text.to_owned())
        );
    }

    #[test]
    fn launch_with_a_wrong_multiple_is_rejected() {
        let kernel = kernel(|k| _ = k.param::<u32>("bytes").multiple_of(4).multiple_of(16));
        assert_eq!(launch_with(&kernel, Arg::scalar(48u32)), Ok(()));
        let text = "parameter bytes is 40, but the kernel takes u32 values that are a multiple of 16\n\
                    help: pass a value that is a multiple of 16";
        assert_eq!(
            launch_with(&kernel, Arg::scalar(40u32)),
            Err(text.to_owned())
        );
    }

    #[test]
    fn bounds_of_signed_parameters_may_be_negative() {
        let kernel_i32 = kernel(|k| _ = k.param::<i32>("n").at_least(-8).at_most(-1));
        let kernel_i64 = kernel(|k| _ = k.param::<i64>("n").at_least(-8).at_most(-1));
        for n in [-8i64, -1] {
            assert_eq!(launch_with(&kernel_i32, Arg::scalar(n as i32)), Ok(()));
            assert_eq!(launch_with(&kernel_i64, Arg::scalar(n)), Ok(()));
        }
        for n in [i64::from(i32::MIN), -9, 0, 5] {
            assert!(
                launch_with(&kernel_i32, Arg::scalar(n as i32)).is_err(),
                "{n}"
            );
            assert!(launch_with(&kernel_i64, Arg::scalar(n)).is_err(), "{n}");
        }
        let any = kernel(|k| _ = k.param::<i32>("n"));
        for n in [i32::MIN, -1, 0, i32::MAX] {
            assert_eq!(launch_with(&any, Arg::scalar(n)), Ok(()));
        }
    }

    #[test]
    fn bounds_of_64_bit_parameters_may_exceed_32_bits() {
        let kernel = kernel(|k| {
            let n = k.param::<u64>("n").at_least(1 << 33).at_most(1 << 63);
            let _ = n.multiple_of(1 << 33);
        });
        for n in [1u64 << 33, 1 << 63] {
            assert_eq!(launch_with(&kernel, Arg::scalar(n)), Ok(()));
        }
        for n in [1u64 << 32, (1 << 33) + 1, (1 << 63) + (1 << 33)] {
            assert!(launch_with(&kernel, Arg::scalar(n)).is_err(), "{n}");
        }
    }

    #[test]
    fn value_outside_of_its_type_is_rejected() {
        use crate::types::Type;
        let kernel = kernel(|k| _ = k.param::<u32>("n"));
        assert_eq!(
            launch_with(&kernel, Arg::Scalar(Type::U32, u32::MAX.into())),
            Ok(())
        );
        let text = launch_with(&kernel, Arg::Scalar(Type::U32, 1 << 32)).expect_err("33 bits");
        assert!(text.contains("is 4294967296, but the kernel takes u32 values"));
    }

    #[test]
    fn launch_with_a_misaligned_pointer_is_rejected() {
        let kernel = kernel(|k| _ = k.pointer::<f32>("x").aligned_to(16));
        assert_eq!(launch_with(&kernel, Arg::Pointer(0x120)), Ok(()));
        let text = "parameter x is the address 0x124, but the kernel takes f32 elements at a multiple of 16 bytes\n\
                    help: pass an address that is a multiple of 16";
        assert_eq!(
            launch_with(&kernel, Arg::Pointer(0x124)),
            Err(text.to_owned())
        );
    }

    #[test]
    fn launch_with_a_short_buffer_is_rejected() {
        let kernel = kernel(|k| {
            let [rows, stride] = ["rows", "stride"].map(|name| k.param::<u32>(name));
            let _ = k.pointer::<f32>("x").elements(extent(rows) * stride + 4u32);
        });
        let launch = Launch {
            grid: [1, 1, 1],
            args: vec![Arg::scalar(3u32), Arg::scalar(8u32), Arg::Pointer(0x100)],
        };
        let check_with_bytes = |bytes| {
            let checked = launch.check_extents(&kernel, |_| bytes);
            checked.map_err(|fault| fault.text)
        };
        assert_eq!(check_with_bytes(Some(4 * 28)), Ok(()));
        assert_eq!(check_with_bytes(None), Ok(()), "a buffer of unknown size");
        let text = "parameter x points to 27 f32 elements, but the kernel takes at least rows*stride + 4 = 28\n\
                    help: pass a larger buffer or smaller extents";
        assert_eq!(check_with_bytes(Some(4 * 28 - 1)), Err(text.to_owned()));
    }

    #[test]
    fn launch_above_the_limit_of_a_product_is_rejected() {
        let kernel = kernel(|k| {
            let [m_tiles, n_tiles] = ["m_tiles", "n_tiles"].map(|name| k.param::<u32>(name));
            k.limit(extent(m_tiles) * n_tiles, (1 << 31) - 1);
        });
        let launch_tiles =
            |m_tiles: u32, n_tiles: u32| launch(&kernel, &[m_tiles, n_tiles].map(Arg::scalar));
        assert_eq!(launch_tiles(1 << 16, (1 << 15) - 1), Ok(()));
        let text = "m_tiles*n_tiles is 2147483648, but the kernel takes at most 2147483647\nhelp: pass smaller values";
        assert_eq!(launch_tiles(1 << 16, 1 << 15), Err(text.to_owned()));
        assert!(
            launch_tiles(u32::MAX, u32::MAX).is_err(),
            "the product must not wrap"
        );
        let line = "  limit m_tiles*n_tiles at most 2147483647\n";
        assert!(kernel.to_string().contains(line));
    }

    #[test]
    fn bounds_enter_the_text_hash_but_not_the_program_hash() {
        let plain = kernel(|k| {
            let [_, _] = ["rows", "cols"].map(|name| k.param::<i32>(name));
            let _ = k.pointer::<f32>("x").pdl_safe();
        });
        let bounded = kernel(|k| {
            let rows = k.param::<i32>("rows").at_least(-1).at_most(64);
            let cols = k.param::<i32>("cols").multiple_of(4);
            let x = k.pointer::<f32>("x").pdl_safe().aligned_to(16);
            let _ = x.elements(extent(rows) * cols * 2u32 - cols + 3u32);
        });
        let params = |kernel: &Kernel| {
            let text = kernel.to_string();
            let params = text.lines().filter(|line| line.contains("  param "));
            params
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            params(&plain)[..3],
            [
                "param rows: i32",
                "param cols: i32",
                "param x: *f32 pdl-safe"
            ]
        );
        assert_eq!(
            params(&bounded)[..3],
            [
                "param rows: i32 at least -1 at most 64",
                "param cols: i32 multiple of 4",
                "param x: *f32 pdl-safe aligned to 16 elements 2*rows*cols - cols + 3",
            ]
        );
        assert_ne!(plain.text_hash(), bounded.text_hash());
        assert_eq!(plain.program_hash(), bounded.program_hash());
    }
}
