//! Packing: a first kernel copies operands that TMA cannot address to rows that it can.
//!
//! The GEMM then loads the copies by TMA. This pays off where many tiles read an operand; elsewhere the
//! producer gathers it (`mainloop/gather.rs`).

mod kernel;

use super::access::OperandAccess;
use super::problem::{ALayout, Matrix, OperandLayout, Problem};
use std::borrow::Cow;
use warpline_family::error::FamilyError;
use warpline_family::keywords;
use warpline_family::plan::{Address, Buffer, LaunchStep, ZEROED_BYTES};
use warpline_family::tensor::TensorSpec;
use warpline_ir::Target;

keywords! {
    /// The operands that a first kernel copies.
    #[derive(Default)]
    pub enum Pack {
        /// None
        #[default]
        None = "none",
        /// A
        A = "a",
        /// B, or gate and up
        B = "b",
        /// A and B
        Both = "ab",
    }
}

/// Rows of a copy start on this many bytes: a sector of L2.
const ROW_ALIGNMENT: u64 = 32;
/// The maximum size of all copies in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// A copy of a tensor in the workspace.
#[derive(Clone, Copy, Debug)]
struct Copy {
    from: Matrix,
    to: Matrix,
    /// Whether rows of the copy are columns of the tensor.
    is_transposed: bool,
}

impl Copy {
    /// Returns the copy of a tensor that a kernel reads in this way.
    fn new(from: Matrix, access: OperandAccess, k_innermost: bool) -> Self {
        let is_transposed = access.k_major != k_innermost;
        let [rows, cols] = match is_transposed {
            false => [from.rows, from.cols],
            true => [from.cols, from.rows],
        };
        let size = from.dtype.bytes() as u64;
        let stride = (cols * size).next_multiple_of(ROW_ALIGNMENT) / size;
        let batch = if from.is_shared() { 1 } else { from.batch };
        let to = Matrix {
            rows,
            cols,
            stride,
            inner_stride: 1,
            batch,
            batch_stride: rows * stride,
            align: ROW_ALIGNMENT as u32,
            ..from
        };
        Self {
            from,
            to,
            is_transposed,
        }
    }

    /// Returns the strides of the source along rows and columns of the copy.
    fn source_strides(&self) -> [u64; 2] {
        let Matrix {
            stride,
            inner_stride,
            ..
        } = self.from;
        match self.is_transposed {
            false => [stride, inner_stride],
            true => [inner_stride, stride],
        }
    }

    /// Returns the batch stride of the operand that the GEMM loads: 0 if all GEMMs share it.
    fn batch_stride(&self) -> u64 {
        match self.from.is_shared() {
            true => 0,
            false => self.to.batch_stride,
        }
    }

    /// Returns the size of the copy in bytes.
    fn bytes(&self) -> u64 {
        let elements = self.to.batch.saturating_mul(self.to.batch_stride);
        elements.saturating_mul(self.to.dtype.bytes() as u64)
    }
}

impl Pack {
    /// Returns whether A and whether B is copied.
    fn operands(self) -> [bool; 2] {
        match self {
            Pack::None => [false, false],
            Pack::A => [true, false],
            Pack::B => [false, true],
            Pack::Both => [true, true],
        }
    }

    /// Returns the operands that can be packed: every value for this problem except [`Pack::None`].
    pub(super) fn options(p: &Problem) -> &'static [Self] {
        let class = p.class();
        match (class.a.gather.is_some(), class.b.gather.is_some()) {
            _ if p.k == 0 => &[],
            (false, false) => &[],
            (true, false) => &[Pack::A],
            (false, true) => &[Pack::B],
            (true, true) => &[Pack::Both, Pack::B, Pack::A],
        }
    }

    /// Returns the copy of A.
    fn copy_of_a(self, p: &Problem) -> Option<Copy> {
        let [copies_a, _] = self.operands();
        copies_a.then(|| Copy::new(p.a(), p.class().a, p.a_layout == ALayout::Mk))
    }

    /// Returns the copies of B, or of gate and up.
    fn copies_of_b(self, p: &Problem) -> Vec<Copy> {
        let [_, copies_b] = self.operands();
        let weights = [Some(p.b()), p.up()].into_iter().flatten();
        let k_innermost = p.layout == OperandLayout::Nk;
        let access = p.class().b;
        match copies_b {
            true => weights.map(|m| Copy::new(m, access, k_innermost)).collect(),
            false => Vec::new(),
        }
    }

    /// Returns all copies.
    fn copies(self, p: &Problem) -> Vec<Copy> {
        let (a, b) = (self.copy_of_a(p), self.copies_of_b(p));
        a.into_iter().chain(b).collect()
    }

    /// Rejects copies of operands that TMA can address, and copies that are too large.
    pub(super) fn check(self, p: &Problem) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Config(text));
        if self != Pack::None && !Self::options(p).contains(&self) {
            return reject(format!(
                "--pack is {}; it copies operands that TMA cannot address\nhelp: leave --pack out",
                self.keyword()
            ));
        }
        let copies = self.copies(p);
        let bytes = copies
            .iter()
            .fold(0u64, |sum, copy| sum.saturating_add(copy.bytes()));
        if bytes > MAX_BYTES || copies.iter().any(|copy| kernel::parts(copy).is_none()) {
            return reject(format!(
                "--pack {} copies {bytes} bytes; the maximum is {MAX_BYTES}, in less than 2^31 parts of rows\n\
                 help: leave --pack out",
                self.keyword()
            ));
        }
        Ok(())
    }

    /// Returns the GEMM of the copies.
    pub(super) fn problem(self, p: &Problem) -> Cow<'_, Problem> {
        if self == Pack::None {
            return Cow::Borrowed(p);
        }
        let class = p.class();
        let mut packed = p.clone();
        if let Some(copy) = self.copy_of_a(p) {
            packed.a_layout = match class.a.k_major {
                true => ALayout::Mk,
                false => ALayout::Km,
            };
            packed.a_stride = Some(copy.to.stride);
            packed.a_batch_stride = Some(copy.batch_stride());
            (packed.a_inner_stride, packed.a_align) = (None, None);
        }
        if let Some(copy) = self.copies_of_b(p).first() {
            packed.layout = match class.b.k_major {
                true => OperandLayout::Nk,
                false => OperandLayout::Kn,
            };
            (packed.b_stride, packed.up_stride) = (Some(copy.to.stride), None);
            packed.b_batch_stride = Some(copy.batch_stride());
            (packed.b_inner_stride, packed.b_align) = (None, None);
        }
        Cow::Owned(packed)
    }

    /// Returns the bytes that the copies read and write.
    pub(super) fn traffic(self, p: &Problem) -> u64 {
        let copies = self.copies(p);
        2 * copies.iter().map(Copy::bytes).sum::<u64>()
    }
}

/// The copies of a plan.
pub(super) struct PackedOperands {
    /// Each copy and its offset in the workspace.
    copies: Vec<(Copy, u64)>,
    /// The size of the workspace.
    pub(super) workspace: u64,
}

impl PackedOperands {
    /// Places the copies after the first `used_bytes` of the workspace.
    pub(super) fn new(pack: Pack, p: &Problem, used_bytes: u64) -> Self {
        let mut end = used_bytes;
        let place = |copy: Copy| {
            let offset = end.max(ZEROED_BYTES).next_multiple_of(256);
            end = offset + copy.bytes();
            (copy, offset)
        };
        let copies = pack.copies(p).into_iter().map(place).collect();
        Self {
            copies,
            workspace: end,
        }
    }

    /// Returns the address of an operand: that of its copy, or of the input.
    pub(super) fn address(
        &self,
        inputs: &[TensorSpec],
        name: &str,
    ) -> Result<Address, FamilyError> {
        let copy = self.copies.iter().find(|(copy, _)| copy.from.name == name);
        match copy {
            Some((_, offset)) => Ok(Buffer::Workspace.at(*offset)),
            None => Ok(Buffer::named(inputs, name)?.into()),
        }
    }

    /// Returns the launches that copy.
    pub(super) fn launches(
        &self,
        inputs: &[TensorSpec],
        target: &Target,
    ) -> Result<Vec<LaunchStep>, FamilyError> {
        let launch = |(copy, offset): &(Copy, u64)| {
            let from = Buffer::named(inputs, copy.from.name)?;
            kernel::launch(copy, from, Buffer::Workspace.at(*offset), target)
        };
        self.copies.iter().map(launch).collect()
    }
}
