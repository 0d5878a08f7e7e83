//! The values of a launch, and the launch they make.

use std::fmt;
use warpline_cpu::Memory;
use warpline_ir::{Arg, Kernel, Launch, MapMode, ParamKind, TensorMapDecl, TensorMapValue, Type};

/// Bytes of each buffer that are filled; what a kernel reads outside has no meaning.
const FILLED: usize = 1 << 13;

/// What a launch passes to a kernel, and what global memory holds then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Values {
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// By parameter: the value of an integer; none of the others.
    pub scalars: Vec<Option<i128>>,
    /// Words of global memory that control flow depends on.
    pub words: Vec<Word>,
    /// All other words.
    pub fill: Fill,
}

/// A word of global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// The index of the pointer parameter that it is read through.
    pub param: usize,
    /// Bytes from the start of the buffer.
    pub byte: u64,
    /// Its type.
    pub ty: Type,
    /// Its value.
    pub value: i128,
}

/// The words of buffers that nothing was decided of, as 32-bit integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// All are this.
    Same(u32),
    /// Random ones below a number.
    Below {
        /// One more than the largest.
        end: u32,
        /// The seed.
        seed: u64,
    },
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fill::Same(x) => write!(f, "{x}"),
            Fill::Below { end, seed } => write!(f, "random below {end}, seed {seed}"),
        }
    }
}

impl Values {
    /// The launch, with its buffers in a memory of its own; a fault in words if the kernel does
    /// not take the values.
    pub fn launch(&self, kernel: &Kernel) -> Result<(Launch, Memory), String> {
        let mut memory = Memory::open();
        let mut args = Vec::new();
        let filled = self.filled();
        for (i, param) in kernel.params.iter().enumerate() {
            let mut buffer = || {
                let mut bytes = filled.clone();
                for word in self.words.iter().filter(|w| w.param == i) {
                    word.put(&mut bytes);
                }
                memory.alloc_from(&bytes, &param.name)
            };
            args.push(match &param.kind {
                ParamKind::Pointer(_) => Arg::Pointer(buffer()),
                ParamKind::TensorMap(decl) => Arg::TensorMap(map(decl, buffer())),
                ParamKind::Scalar(ty) => {
                    let value = self.scalars.get(i).copied().flatten().unwrap_or(0);
                    Arg::Scalar(*ty, bits(*ty, value))
                }
            });
        }
        let launch = Launch {
            grid: self.grid,
            args,
        };
        launch.check(kernel).map_err(|fault| fault.text)?;
        Ok((launch, memory))
    }

    fn filled(&self) -> Vec<u8> {
        let words = FILLED / 4;
        let word = |i: usize| match self.fill {
            Fill::Same(x) => x,
            Fill::Below { end, seed } => (mix(seed, i as u64) % u64::from(end.max(1))) as u32,
        };
        (0..words).flat_map(|i| word(i).to_le_bytes()).collect()
    }
}

/// The parameter whose buffer an address is in, and the byte there: buffers of a launch start at
/// [`base`].
pub(crate) fn place(kernel: &Kernel, at: i128) -> Option<(usize, u64)> {
    let at = u64::try_from(at).ok()?;
    let number = (at >> 40).checked_sub(1)?;
    let mut buffers = buffers(kernel);
    let param = buffers.nth(usize::try_from(number).ok()?)?;
    Some((param, at & ((1 << 40) - 1)))
}

/// The address of the buffer of a parameter in the launches made here.
pub(crate) fn base(kernel: &Kernel, param: usize) -> Option<i128> {
    let number = buffers(kernel).position(|p| p == param)?;
    Some((number as i128 + 1) << 40)
}

/// The parameters that have buffers.
fn buffers(kernel: &Kernel) -> impl Iterator<Item = usize> + '_ {
    let params = kernel.params.iter().enumerate();
    let has = |kind: &ParamKind| !matches!(kind, ParamKind::Scalar(_));
    params.filter(move |(_, p)| has(&p.kind)).map(|(i, _)| i)
}

impl Word {
    fn put(&self, bytes: &mut [u8]) {
        let width = self.ty.bytes();
        let value = self.value.to_le_bytes();
        let at = usize::try_from(self.byte).unwrap_or(usize::MAX);
        let end = at.saturating_add(width);
        if let Some(to) = bytes.get_mut(at..end) {
            to.copy_from_slice(&value[..width]);
        }
    }
}

/// The bits of a value in its type.
fn bits(ty: Type, value: i128) -> u64 {
    let width = 8 * ty.bytes().min(8) as u32;
    let all = value as u64;
    if width == 64 {
        all
    } else {
        all & ((1 << width) - 1)
    }
}

/// A tensor that a map can describe.
fn map(decl: &TensorMapDecl, base: u64) -> TensorMapValue {
    let inner = match &decl.mode {
        MapMode::Im2col { channels, .. } => (*channels).max(256),
        _ => decl.tile.first().copied().unwrap_or(1).max(256),
    };
    let mut extents = vec![u64::from(inner.next_multiple_of(256))];
    // Large enough that every role has rows to copy.
    let other = if decl.rank() <= 2 { 1 << 14 } else { 256 };
    extents.resize(decl.rank(), other);
    TensorMapValue::dense(decl.clone(), base, &extents)
}

/// A random number that follows from two.
pub(crate) fn mix(seed: u64, n: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 29)
}
