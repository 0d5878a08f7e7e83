//! The arguments and memory of a launch.

use std::fmt;
use warpline_cpu::GlobalMemory;
use warpline_ir::{
    Arg, Kernel, Launch, ParamKind, TensorMapDecl, TensorMapMode, TensorMapValue, Type,
};

/// The bytes of each buffer that are filled; reads outside return unspecified bytes.
const FILLED: usize = 1 << 13;

/// The arguments of a launch and the contents of global memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchValues {
    /// CTAs, by axis.
    pub grid: [u32; 3],
    /// By parameter: its value, for integers only.
    pub scalars: Vec<Option<i128>>,
    /// Words of global memory that control flow depends on.
    pub words: Vec<MemoryWord>,
    /// The contents of all other words.
    pub fill: MemoryFill,
    /// Whether the values satisfy every decision of the search, so that its trace is theirs.
    pub(crate) follows_search: bool,
}

/// A word of global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryWord {
    /// The index of the pointer parameter through which the kernel reads the word.
    pub param: usize,
    /// Bytes from the start of the buffer.
    pub byte: u64,
    /// Its type.
    pub ty: Type,
    /// Its value.
    pub value: i128,
}

/// The contents of words that the search did not decide, as 32-bit integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFill {
    /// The same value in all words.
    Same(u32),
    /// Random values below a number.
    Below {
        /// The end of the range, exclusive.
        end: u32,
        /// The seed of the random numbers.
        seed: u64,
    },
}

impl fmt::Display for MemoryFill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryFill::Same(x) => write!(f, "{x}"),
            MemoryFill::Below { end, seed } => write!(f, "random words below {end} (seed {seed})"),
        }
    }
}

impl LaunchValues {
    /// Returns the launch, with its buffers in a memory of its own, or an error message if the
    /// kernel does not accept the values.
    pub fn launch(&self, kernel: &Kernel) -> Result<(Launch, GlobalMemory), String> {
        let mut memory = GlobalMemory::unbounded();
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
                ParamKind::TensorMap(decl) => Arg::TensorMap(legal_tensor(decl, buffer())),
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
            MemoryFill::Same(x) => x,
            MemoryFill::Below { end, seed } => (mix(seed, i as u64) % u64::from(end.max(1))) as u32,
        };
        (0..words).flat_map(|i| word(i).to_le_bytes()).collect()
    }
}

/// Returns the parameter whose buffer contains an address, and the byte offset. Buffers of a launch
/// start at [`buffer_address`].
pub(crate) fn buffer_at(kernel: &Kernel, at: i128) -> Option<(usize, u64)> {
    let at = u64::try_from(at).ok()?;
    let number = (at >> 40).checked_sub(1)?;
    let mut buffers = buffers(kernel);
    let param = buffers.nth(usize::try_from(number).ok()?)?;
    Some((param, at & ((1 << 40) - 1)))
}

/// Returns the address of the buffer of a parameter.
pub(crate) fn buffer_address(kernel: &Kernel, param: usize) -> Option<i128> {
    let number = buffers(kernel).position(|p| p == param)?;
    Some((number as i128 + 1) << 40)
}

/// Returns the parameters that have buffers.
fn buffers(kernel: &Kernel) -> impl Iterator<Item = usize> + '_ {
    let params = kernel.params.iter().enumerate();
    let has = |kind: &ParamKind| !matches!(kind, ParamKind::Scalar(_));
    params.filter(move |(_, p)| has(&p.kind)).map(|(i, _)| i)
}

impl MemoryWord {
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

/// Returns the bits of a value in its type.
fn bits(ty: Type, value: i128) -> u64 {
    let width = 8 * ty.bytes().min(8) as u32;
    let all = value as u64;
    if width == 64 {
        all
    } else {
        all & ((1 << width) - 1)
    }
}

/// Returns a tensor that its tensor map accepts.
fn legal_tensor(decl: &TensorMapDecl, base: u64) -> TensorMapValue {
    let inner = match &decl.mode {
        TensorMapMode::Im2col { channels, .. } => (*channels).max(256),
        _ => decl.tile.first().copied().unwrap_or(1).max(256),
    };
    let mut extents = vec![u64::from(inner.next_multiple_of(256))];
    // These extents are large enough for every role to copy some rows.
    let other = if decl.rank() <= 2 { 1 << 14 } else { 256 };
    extents.resize(decl.rank(), other);
    TensorMapValue::dense(decl.clone(), base, &extents)
}

/// Returns a pseudo-random number from a seed and an index.
pub(crate) fn mix(seed: u64, n: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 29)
}
