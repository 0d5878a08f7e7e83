//! What a launch passes to a kernel: the same for every device.

use crate::machine::{Fault, FaultKind};
use crate::program::{Kernel, ParamKind};
use crate::tensor_map::TensorMapValue;
use crate::types::{Scalar, Type};

/// One argument.
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
    /// A number of a Rust type.
    pub fn scalar<T: Scalar>(x: T) -> Self {
        Arg::Scalar(T::TYPE, x.to_bits())
    }
}

/// Grid and arguments of one launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// Arguments, in the order of the kernel's parameters.
    pub args: Vec<Arg>,
}

impl Launch {
    /// Checks grid and arguments against the kernel; the fault names the rule and the value.
    pub fn check(&self, kernel: &Kernel) -> Result<(), Fault> {
        let bad = |text: String| Err(Fault::new(FaultKind::Launch, text));
        if self.args.len() != kernel.params.len() {
            return bad(format!(
                "kernel {} takes {} arguments, not {}",
                kernel.name,
                kernel.params.len(),
                self.args.len()
            ));
        }
        for axis in 0..3 {
            let (g, c) = (self.grid[axis], kernel.cluster[axis]);
            if g == 0 || !g.is_multiple_of(c) {
                return bad(format!(
                    "a grid is a positive multiple of the cluster in each axis; axis {axis} has {g} CTAs and clusters of {c}"
                ));
            }
        }
        for (p, a) in kernel.params.iter().zip(&self.args) {
            match (&p.kind, a) {
                (ParamKind::Scalar(want), Arg::Scalar(got, value)) if want == got => {
                    if *value < p.least {
                        return bad(format!(
                            "parameter {} is at least {}, not {value}",
                            p.name, p.least
                        ));
                    }
                }
                (ParamKind::Pointer(dtype), Arg::Pointer(at)) => {
                    if !at.is_multiple_of(dtype.bytes() as u64) {
                        return bad(format!(
                            "parameter {} is the address of {dtype} elements, which {at:#x} cannot be",
                            p.name
                        ));
                    }
                }
                (ParamKind::TensorMap(decl), Arg::TensorMap(map)) => {
                    if *decl != map.decl {
                        return bad(format!(
                            "parameter {} was declared with another box, dtype or swizzle than the map passed",
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
                (want, got) => {
                    return bad(format!("parameter {} is {want:?}, not {got:?}", p.name));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Arg, Launch};
    use crate::Kernel;
    use crate::build::steps;

    /// A kernel of one parameter, and what becomes of a launch with it.
    fn launched(least: u32, value: u32) -> (Kernel, Result<(), String>) {
        let kernel = Kernel::build("rounds", |k| {
            let rounds = k.param::<u32>("rounds").at_least(least);
            k.role("all").body(|| steps(rounds).each(|_| {}));
        })
        .expect("a kernel");
        let launch = Launch {
            grid: [1, 1, 1],
            args: vec![Arg::scalar(value)],
        };
        let outcome = launch.check(&kernel).map_err(|fault| fault.text);
        (kernel, outcome)
    }

    #[test]
    fn a_launch_passes_no_less_than_the_least_value() {
        assert_eq!(launched(3, 3).1, Ok(()));
        let refused = Err("parameter rounds is at least 3, not 2".to_owned());
        assert_eq!(launched(3, 2).1, refused);
    }

    #[test]
    fn the_least_value_is_part_of_the_program() {
        let [none, one] = [0, 1].map(|least| launched(least, 1).0);
        assert!(none.to_string().contains("  param rounds: u32\n"));
        assert!(one.to_string().contains("  param rounds: u32 at least 1\n"));
        assert_ne!(none.hash(), one.hash());
    }
}
