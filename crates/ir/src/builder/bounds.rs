//! Declared bounds of launch parameters.

use super::declare::{Builder, param_of_register};
use super::global::Global;
use super::reg::{Int, Reg, Value};
use super::state::{BuilderState, with};
use crate::bounds::{Extent, Limit};
use crate::loc::Frame;
use crate::types::Element;
use crate::value::{ParamId, RegId};

impl Builder {
    /// Declares an upper bound of a sum of products of parameters, as
    /// [`at_most`](Reg::at_most) does for one parameter.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// let kernel = Kernel::build("tiles", &Target::SM_90A, |k| {
    ///     let [m_tiles, n_tiles] = ["m_tiles", "n_tiles"].map(|name| k.param::<u32>(name));
    ///     k.limit(extent(m_tiles) * n_tiles, u64::from(u32::MAX));
    ///     k.role("all").body(|| steps(m_tiles * n_tiles).each(|_| {}));
    /// })?;
    /// assert_eq!(kernel.limits.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn limit(self, sum: Extent, most: u64) {
        let frame = Frame::caller();
        with(|s| {
            let loc = s.loc(frame);
            s.limits.push(Limit { sum, most, loc });
        });
    }
}

impl<T: Int + Into<i128>> Reg<T> {
    /// Declares the minimum of this launch parameter. Launches with less are rejected, and the
    /// checker relies on the bound.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// let kernel = Kernel::build("rounds", &Target::SM_90A, |k| {
    ///     let rounds = k.param::<u32>("rounds").at_least(1).at_most(1 << 20);
    ///     k.role("all").body(|| steps(rounds).each(|_| {}));
    /// })?;
    /// assert!(kernel.params[0].bounds.within(1, 1 << 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn at_least(self, least: T) -> Self {
        set_bound(self.operand().as_reg(), "minimum", |s, p| {
            let bounds = &mut s.params[p.index()].bounds;
            bounds.least = bounds.least.max(least.into());
            Ok(())
        });
        self
    }

    /// Declares the maximum of this launch parameter. Launches with more are rejected, and the
    /// checker relies on the bound.
    #[track_caller]
    pub fn at_most(self, most: T) -> Self {
        set_bound(self.operand().as_reg(), "maximum", |s, p| {
            let bounds = &mut s.params[p.index()].bounds;
            bounds.most = bounds.most.min(most.into());
            Ok(())
        });
        self
    }

    /// Declares that this launch parameter is a multiple of `divisor`.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// let kernel = Kernel::build("copies", &Target::SM_90A, |k| {
    ///     let bytes = k.param::<u32>("bytes").multiple_of(16);
    ///     k.role("all").body(|| steps(bytes / 16).each(|_| {}));
    /// })?;
    /// assert_eq!(kernel.params[0].bounds.multiple_of, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn multiple_of(self, divisor: u64) -> Self {
        set_bound(self.operand().as_reg(), "divisor", |s, p| {
            let bounds = &mut s.params[p.index()].bounds;
            bounds.multiple_of = common_multiple(bounds.multiple_of, divisor).ok_or_else(|| {
                format!("multiple_of({divisor}) is out of range; use 1 to 2^64 - 1")
            })?;
            Ok(())
        });
        self
    }
}

impl<T: Element> Global<T> {
    /// Declares the alignment of this pointer parameter in bytes, a power of two; the default
    /// is the element size.
    #[track_caller]
    pub fn aligned_to(self, bytes: u64) -> Self {
        set_bound(self.address(0).operand().as_reg(), "alignment", |s, p| {
            if !bytes.is_power_of_two() {
                return Err(format!("aligned_to({bytes}) is not a power of two"));
            }
            let bounds = &mut s.params[p.index()].bounds;
            bounds.multiple_of = bounds.multiple_of.max(bytes);
            Ok(())
        });
        self
    }

    /// Declares the minimum number of elements behind this pointer parameter: a constant, an
    /// integer parameter, or sums and products of them that begin with [`extent`].
    ///
    /// Launches with a buffer that is known to be shorter are rejected.
    ///
    /// ```
    /// use warpline_ir::{Kernel, Target, builder::*};
    ///
    /// let kernel = Kernel::build("fill", &Target::SM_90A, |k| {
    ///     let [rows, cols] = ["rows", "cols"].map(|name| k.param::<u32>(name));
    ///     let x = k.pointer::<f32>("x").elements(extent(rows) * cols);
    ///     k.role("all").body(|| steps(rows * cols).each(|i| x.store(i, 0.0)));
    /// })?;
    /// assert!(kernel.to_string().contains("param x: *f32 elements rows*cols"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn elements(self, count: impl Into<Extent>) -> Self {
        let count = count.into();
        set_bound(self.address(0).operand().as_reg(), "extent", |s, p| {
            s.params[p.index()].bounds.elements = Some(count);
            Ok(())
        });
        self
    }
}

/// Returns an integer parameter or a constant as an extent, the start of sums and products.
#[track_caller]
pub fn extent(count: impl Into<Extent>) -> Extent {
    count.into()
}

impl<T: Int> From<Reg<T>> for Extent {
    #[track_caller]
    fn from(count: Reg<T>) -> Self {
        let mut extent = Extent::default();
        set_bound(count.operand().as_reg(), "extent", |_, p| {
            extent = p.into();
            Ok(())
        });
        extent
    }
}

/// Sets a bound of the parameter that a register holds.
#[track_caller]
fn set_bound(
    reg: Option<RegId>,
    bound: &str,
    set: impl FnOnce(&mut BuilderState, ParamId) -> Result<(), String>,
) {
    let frame = Frame::caller();
    with(|s| {
        let Some(p) = reg.and_then(|reg| param_of_register(s, reg)) else {
            let text = format!(
                "the {bound} of a computed value is declared; only launch parameters have one"
            );
            s.error("not-a-parameter", text, frame, None);
            return;
        };
        if let Err(text) = set(s, p) {
            s.error("parameter-bounds", text, frame, None);
            return;
        }
        let (name, bounds) = (&s.params[p.index()].name, &s.params[p.index()].bounds);
        if bounds.is_empty() {
            let text = format!(
                "no value of parameter {name} is at least {}, at most {} and a multiple of {}",
                bounds.least, bounds.most, bounds.multiple_of
            );
            s.error("parameter-bounds", text, frame, None);
        }
    });
}

/// Returns the least common multiple; `None` for 0 or beyond 64 bits.
fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    match a.checked_div(x)?.checked_mul(b)? {
        0 => None,
        multiple => Some(multiple),
    }
}
