//! Keys of calls: everything that a plan depends on.

use super::call::Call;
use warpline_ir::DType;
use warpline_kernels::BufferAddresses;
use warpline_kernels::op::{ArgValue, TensorView};

/// A call as numbers: the key of its plan, and the addresses of its tensors. Two calls with the same
/// key share a plan. The key has only the 16-byte alignment of an address.
///
/// Callers that launch often keep one and refill it, which does not allocate. Push the arguments in
/// the order of the parameters, then the outputs:
///
/// ```
/// use warpline::ops::CallKey;
/// use warpline::DType;
///
/// let mut key = CallKey::default();
/// let mut words = |x: u64| {
///     key.begin(1, true);
///     key.input(DType::F32, [4, 8], [8, 1], x);
///     key.integer(-1);
///     key.output(DType::F32, [4, 8], [8, 1], 4096);
///     key.words().to_vec()
/// };
/// assert_eq!(words(1024), words(2048));
/// assert_ne!(words(1024), words(1028), "another alignment");
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallKey {
    words: Vec<u64>,
    addresses: BufferAddresses,
}

impl CallKey {
    /// Starts the key of a call of the op at an index of [`all`](super::all). Removes the previous
    /// call and keeps the capacity.
    pub fn begin(&mut self, op: usize, is_deterministic: bool) {
        self.words.clear();
        self.addresses.inputs.clear();
        self.addresses.outputs.clear();
        self.addresses.workspace = 0;
        self.words
            .push(op as u64 | u64::from(is_deterministic) << 32);
    }

    /// Appends an omitted argument.
    pub fn none(&mut self) {
        self.words.push(0);
    }

    /// Appends a tensor argument; strides are in elements.
    pub fn input(
        &mut self,
        dtype: DType,
        shape: impl IntoIterator<Item = u64>,
        strides: impl IntoIterator<Item = i64>,
        address: u64,
    ) {
        self.view(dtype, shape, strides, address);
        self.addresses.inputs.push(address);
    }

    /// Appends an output; strides are in elements.
    pub fn output(
        &mut self,
        dtype: DType,
        shape: impl IntoIterator<Item = u64>,
        strides: impl IntoIterator<Item = i64>,
        address: u64,
    ) {
        self.view(dtype, shape, strides, address);
        self.addresses.outputs.push(address);
    }

    /// Appends an output of a layout that follows from the arguments; the key has no word of it.
    pub fn implied_output(&mut self, address: u64) {
        self.addresses.outputs.push(address);
    }

    /// Appends a number.
    pub fn number(&mut self, x: f64) {
        self.words.extend([2, x.to_bits()]);
    }

    /// Appends an integer.
    pub fn integer(&mut self, n: i64) {
        self.words.extend([3, n as u64]);
    }

    /// Appends a string.
    pub fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.words.extend([4, bytes.len() as u64]);
        let word = |chunk: &[u8]| chunk.iter().fold(0, |n, &x| n << 8 | u64::from(x));
        self.words.extend(bytes.chunks(8).map(word));
    }

    /// Appends a boolean.
    pub fn flag(&mut self, flag: bool) {
        self.words.extend([5, u64::from(flag)]);
    }

    /// Appends two integers.
    pub fn pair(&mut self, [first, second]: [i64; 2]) {
        self.words.extend([7, first as u64, second as u64]);
    }

    /// Appends a list of integers. It occupies an input, which no kernel reads.
    pub fn integers(&mut self, all: &[i64]) {
        self.words.extend([6, all.len() as u64]);
        self.words.extend(all.iter().map(|&n| n as u64));
        self.addresses.inputs.push(0);
    }

    /// Returns the key.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the addresses of the inputs and outputs, and of the workspace that was set last.
    pub fn addresses(&self) -> &BufferAddresses {
        &self.addresses
    }

    /// Sets the address of the workspace.
    pub fn set_workspace(&mut self, address: u64) {
        self.addresses.workspace = address;
    }

    fn view(
        &mut self,
        dtype: DType,
        shape: impl IntoIterator<Item = u64>,
        strides: impl IntoIterator<Item = i64>,
        address: u64,
    ) {
        let at = self.words.len();
        self.words.push(0);
        self.words.extend(shape);
        let rank = self.words.len() - at - 1;
        self.words[at] = 1
            | u64::from(address.is_multiple_of(16)) << 8
            | (dtype as u64) << 16
            | (rank as u64) << 32;
        self.words.extend(strides.into_iter().map(|n| n as u64));
    }

    /// Returns the key of a call.
    pub(super) fn of(call: &Call) -> Self {
        let mut key = Self {
            words: Vec::with_capacity(64),
            addresses: BufferAddresses::default(),
        };
        key.begin(call.index, call.deterministic);
        for value in &call.args {
            match value {
                ArgValue::None => key.none(),
                ArgValue::Tensor(TensorView {
                    dtype,
                    shape,
                    strides,
                    address,
                }) => key.input(
                    *dtype,
                    shape.iter().copied(),
                    strides.iter().copied(),
                    *address,
                ),
                ArgValue::Number(x) => key.number(*x),
                ArgValue::Integer(n) => key.integer(*n),
                ArgValue::Flag(flag) => key.flag(*flag),
                &ArgValue::Pair(pair) => key.pair(pair),
                ArgValue::Integers(all) => key.integers(all),
                ArgValue::Text(text) => key.text(text),
            }
        }
        for view in &call.outs {
            let (shape, strides) = (view.shape.iter().copied(), view.strides.iter().copied());
            key.output(view.dtype, shape, strides, view.address);
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(x: TensorView, dim: i64, y: TensorView) -> Vec<u64> {
        CallKey::of(&Call::with(1, vec![x.into(), dim.into()], vec![y])).words
    }

    #[test]
    fn calls_with_other_aligned_addresses_share_a_plan() {
        let at = |address| TensorView::dense(DType::F32, &[4, 8], address);
        let key = call(at(1024), -1, at(4096));
        assert_eq!(key, call(at(2048), -1, at(8192)));
        let mut padded = at(1024);
        padded.strides[0] = 9;
        let others = [
            call(at(1028), -1, at(4096)),
            call(at(1024), -1, at(4100)),
            call(at(1024), 1, at(4096)),
            call(padded, -1, at(4096)),
            call(TensorView::dense(DType::Bf16, &[4, 8], 1024), -1, at(4096)),
            call(TensorView::dense(DType::F32, &[8, 4], 1024), -1, at(4096)),
            call(
                TensorView::dense(DType::F32, &[4, 8, 1], 1024),
                -1,
                at(4096),
            ),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(&key, other, "{i}");
        }
    }

    #[test]
    fn calls_with_other_integers_have_other_plans() {
        let call = |first: Vec<i64>, second: Vec<i64>| {
            let args = vec![first.into(), second.into()];
            CallKey::of(&Call::with(1, args, Vec::new())).words
        };
        let expected = call(vec![4, 6], vec![0]);
        assert_eq!(expected, call(vec![4, 6], vec![0]));
        for other in [
            call(vec![6, 4], vec![0]),
            call(vec![4], vec![6, 0]),
            call(vec![4, 6], vec![]),
        ] {
            assert_ne!(expected, other);
        }
    }

    #[test]
    fn a_refilled_key_has_no_stale_words_and_addresses() {
        let row = |address| TensorView::dense(DType::F32, &[1, 8], address);
        let one = Call::with(1, vec![row(16).into(), 1.into()], vec![row(32)]);
        let expected = CallKey::of(&one);
        let mut key = CallKey::default();
        for address in [64, 16] {
            key.begin(1, true);
            key.input(DType::F32, [1, 8], [8, 1], address);
            key.integer(1);
            key.output(DType::F32, [1, 8], [8, 1], 2 * address);
        }
        assert_eq!(key.words(), expected.words());
        assert_eq!(key.addresses().inputs, [16]);
        assert_eq!(key.addresses().outputs, [32]);
    }
}
