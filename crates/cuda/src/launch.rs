//! Kernel launches: launch configuration and arguments.

use std::ffi::c_void;
use std::ptr::without_provenance_mut;

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUlaunchAttribute, CUlaunchConfig, CUstream, CUtensorMap};
use crate::function::Function;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::tensor_map::EncodedTensorMap;

/// The configuration of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; `None` launches without clusters.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// Whether this is a dependent launch (PDL): it may start before the preceding work in the
    /// stream ends.
    pub dependent: bool,
}

impl LaunchConfig {
    /// Creates a launch without clusters or dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            cluster: None,
            shared_bytes: 0,
            dependent: false,
        }
    }

    /// Sets the grid.
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.grid = grid;
        self
    }

    /// Sets the cluster shape.
    pub fn cluster(mut self, cluster: Option<[u32; 3]>) -> Self {
        self.cluster = cluster;
        self
    }

    /// Sets the dynamic shared memory.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Sets whether this is a dependent launch (PDL). A dependent kernel waits for the preceding
    /// work with `griddepcontrol.wait`.
    pub fn dependent(mut self, dependent: bool) -> Self {
        self.dependent = dependent;
        self
    }

    /// Returns the optional launch attributes: cluster and dependence.
    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::default();
        if let Some(cluster) = self.cluster {
            attributes.push(ffi::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster);
        }
        if self.dependent {
            attributes.push(
                ffi::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                &[1],
            );
        }
        attributes
    }

    /// Converts to the driver's struct; `attributes` must outlive the result.
    fn raw(&self, stream: CUstream, attributes: &mut Attributes) -> CUlaunchConfig {
        CUlaunchConfig {
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            stream,
            attributes: attributes.list.as_mut_ptr(),
            attribute_count: attributes.len,
        }
    }

    /// Checks the rules whose violation the driver reports only as an error code.
    fn check(&self, function: &Function) -> Result<(), String> {
        if self.grid.contains(&0) || self.block.contains(&0) {
            return Err(format!(
                "grid {:?} and block {:?} must not contain a 0",
                self.grid, self.block
            ));
        }
        if self.grid[0] > i32::MAX as u32 || self.grid[1] > 65_535 || self.grid[2] > 65_535 {
            return Err(format!(
                "grid {:?} exceeds the limit of [2147483647, 65535, 65535]",
                self.grid
            ));
        }
        let max = function.attributes().max_threads;
        if product(self.block) > max.into() {
            return Err(format!(
                "block {:?} exceeds this kernel's limit of {max} threads",
                self.block
            ));
        }
        if self.shared_bytes > function.max_dynamic_shared() {
            return Err(format!(
                "{} bytes of dynamic shared memory exceed this kernel's limit of {} bytes\nhelp: call set_max_dynamic_shared",
                self.shared_bytes,
                function.max_dynamic_shared()
            ));
        }
        let Some(cluster) = self.cluster else {
            return Ok(());
        };
        if cluster.contains(&0) || (0..3).any(|i| !self.grid[i].is_multiple_of(cluster[i])) {
            return Err(format!(
                "cluster {cluster:?} does not divide grid {:?}",
                self.grid
            ));
        }
        let max = function.max_cluster();
        if product(cluster) > max.into() {
            return Err(format!(
                "cluster {cluster:?} exceeds the limit of {max} CTAs"
            ));
        }
        Ok(())
    }
}

/// The attributes of one launch, stored on the stack.
#[derive(Default)]
struct Attributes {
    list: [CUlaunchAttribute; 2],
    len: u32,
}

impl Attributes {
    fn push(&mut self, id: u32, value: &[u32]) {
        let next = &mut self.list[self.len as usize];
        next.id = id;
        next.value[..value.len()].copy_from_slice(value);
        self.len += 1;
    }
}

fn product(dims: [u32; 3]) -> u128 {
    dims.into_iter().map(u128::from).product()
}

/// Launches a kernel on `stream`. Does not allocate or wait; a later synchronization reports
/// faults of the kernel.
///
/// Checks the configuration first, and the argument sizes if [`Function::params`] returns the
/// parameter sizes; otherwise the caller must pass arguments that match.
pub fn launch(
    function: &Function,
    config: &LaunchConfig,
    stream: &Stream,
    args: &Args,
) -> Result<(), CudaError> {
    let rejected = |why| CudaError::bad_argument(format!("launch of {}", function.name()), why);
    config.check(function).map_err(rejected)?;
    if let Some(sizes) = function.params() {
        args.check(sizes).map_err(rejected)?;
    }
    let context = function.module().context();
    context.expect_same(stream.context(), || {
        format!("launch of {}", function.name())
    })?;

    let mut attributes = config.attributes();
    let raw = config.raw(stream.raw(), &mut attributes);
    let params = args.pointers();
    let _current = context.enter()?;
    // SAFETY: the config and its attributes are on this stack; each pointer in `params` refers
    // to a value of its parameter's size, and the driver copies the values before it returns.
    unsafe {
        cu!(
            context.driver(),
            cuLaunchKernelEx(&raw, function.raw, params, std::ptr::null_mut())
        )
    }
}

impl Function {
    /// Returns the number of clusters that can be resident on the device at once; 0 if none
    /// fits or the launch has no clusters.
    pub fn max_active_clusters(&self, config: &LaunchConfig) -> Result<u32, CudaError> {
        if config.cluster.is_none() {
            return Ok(0);
        }
        let context = self.module().context();
        let mut attributes = config.attributes();
        let raw = config.raw(CUstream::NULL, &mut attributes);
        let mut count = 0;
        let _current = context.enter()?;
        // SAFETY: writes one int; the config and its attributes are on this stack.
        unsafe {
            cu!(
                context.driver(),
                cuOccupancyMaxActiveClusters(&mut count, self.raw, &raw)
            )
        }?;
        Ok(count.max(0).unsigned_abs())
    }

    /// Returns the occupancy: the CTAs that can be resident on one SM, ignoring clusters.
    pub fn max_active_blocks(&self, config: &LaunchConfig) -> Result<u32, CudaError> {
        let context = self.module().context();
        let threads = i32::try_from(product(config.block)).unwrap_or(i32::MAX);
        let mut count = 0;
        let _current = context.enter()?;
        // SAFETY: writes one int.
        unsafe {
            cu!(
                context.driver(),
                cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &mut count,
                    self.raw,
                    threads,
                    config.shared_bytes as usize
                )
            )
        }?;
        Ok(count.max(0).unsigned_abs())
    }
}

/// A scalar type that can be a kernel argument.
pub trait ScalarArg: Copy + sealed::LittleEndian {}

mod sealed {
    pub trait LittleEndian {
        type Array: AsRef<[u8]>;
        fn bytes(self) -> Self::Array;
    }
}

macro_rules! scalars {
    ($($ty:ty)*) => {$(
        impl sealed::LittleEndian for $ty {
            type Array = [u8; size_of::<$ty>()];
            fn bytes(self) -> Self::Array {
                self.to_le_bytes()
            }
        }
        impl ScalarArg for $ty {}
    )*};
}

scalars!(u8 u16 u32 i32 u64 i64 f32 f64);

/// The arguments of a launch, in the order of the kernel's parameters.
///
/// Values are copied in with the layout of PTX parameters: each at the next multiple of its
/// size, tensor maps at a multiple of 64. Clearing and refilling a list does not allocate.
///
/// Addresses are plain numbers: keep the buffers alive until the launch completes.
#[derive(Debug, Default)]
pub struct Args {
    chunks: Vec<AlignedChunk>,
    len: usize,
    /// Offset and size of each argument.
    ranges: Vec<(usize, usize)>,
    /// A pointer to each argument, in the driver's format.
    pointers: Vec<ParamPointer>,
}

/// A storage unit with the alignment of tensor maps.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct AlignedChunk([u8; 64]);

#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct ParamPointer(#[allow(dead_code)] *mut c_void);

// SAFETY: points into the heap storage of `chunks`, which moves and is freed with it; written under
// `&mut Args`, and dereferenced only by the driver, which only reads.
unsafe impl Send for ParamPointer {}
// SAFETY: as above.
unsafe impl Sync for ParamPointer {}

impl Args {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a scalar. Half-precision values are passed as their bits.
    pub fn push<T: ScalarArg>(&mut self, value: T) -> &mut Self {
        let bytes = value.bytes();
        let bytes = bytes.as_ref();
        self.append(bytes, bytes.len())
    }

    /// Appends a device address.
    pub fn pointer(&mut self, address: u64) -> &mut Self {
        self.push(address)
    }

    /// Appends the address of a buffer.
    pub fn buffer(&mut self, buffer: &DeviceBuffer) -> &mut Self {
        self.push(buffer.address())
    }

    /// Appends a tensor map, by value.
    pub fn tensor_map(&mut self, map: &EncodedTensorMap) -> &mut Self {
        self.append(&map.to_bytes(), 64)
    }

    /// Replaces a device address in place.
    pub fn set_pointer(&mut self, index: usize, address: u64) -> Result<(), CudaError> {
        let offset = self.offset_of(index, size_of::<u64>())?;
        // A value of 8 bytes is at a multiple of 8, inside one chunk.
        let bytes = &mut self.chunks[offset / 64].0[offset % 64..][..8];
        bytes.copy_from_slice(&address.to_le_bytes());
        Ok(())
    }

    /// Replaces the address of a tensor map in place. It is cheaper than encoding the map again, and
    /// does not allocate.
    pub fn set_tensor_address(
        &mut self,
        context: &Context,
        index: usize,
        address: u64,
    ) -> Result<(), CudaError> {
        let offset = self.offset_of(index, size_of::<CUtensorMap>())?;
        if address == 0 || !address.is_multiple_of(16) {
            return Err(CudaError::bad_argument(
                "tensor map",
                format!("the address must be a multiple of 16 and not null, not {address:#x}"),
            ));
        }
        let map: *mut CUtensorMap = self.chunks[offset / 64..].as_mut_ptr().cast();
        let _current = context.enter()?;
        // SAFETY: `map` points to 128 initialized bytes of `chunks` at a multiple of 64; the address
        // is a number for the device.
        unsafe {
            cu!(
                context.driver(),
                cuTensorMapReplaceAddress(map, without_provenance_mut(address as usize))
            )
        }
    }

    /// Returns the offset of an argument of the given size.
    fn offset_of(&self, index: usize, bytes: usize) -> Result<usize, CudaError> {
        match self.ranges.get(index) {
            Some(&(offset, size)) if size == bytes => Ok(offset),
            found => Err(CudaError::bad_argument(
                format!("argument {index}"),
                format!(
                    "it has {} bytes, its replacement has {bytes}",
                    found.map_or(0, |&(_, size)| size)
                ),
            )),
        }
    }

    /// Removes all arguments and keeps the capacity.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.ranges.clear();
        self.pointers.clear();
        self.len = 0;
    }

    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the offset and size of each argument in [`Args::to_bytes`].
    pub fn ranges(&self) -> &[(usize, usize)] {
        &self.ranges
    }

    /// Returns the parameter block, with zeros as padding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.0);
        all.take(self.len).collect()
    }

    fn append(&mut self, bytes: &[u8], align: usize) -> &mut Self {
        let offset = self.len.next_multiple_of(align);
        self.len = offset + bytes.len();
        self.chunks
            .resize(self.len.div_ceil(64), AlignedChunk([0; 64]));
        for (i, &byte) in (offset..).zip(bytes) {
            self.chunks[i / 64].0[i % 64] = byte;
        }
        self.ranges.push((offset, bytes.len()));
        // `resize` may have moved the storage.
        let base = self.chunks.as_mut_ptr().cast::<u8>();
        let pointer =
            |&(offset, _): &(usize, usize)| ParamPointer(base.wrapping_add(offset).cast());
        self.pointers.clear();
        self.pointers.extend(self.ranges.iter().map(pointer));
        self
    }

    /// Returns one pointer per argument; valid until the arguments change.
    fn pointers(&self) -> *mut *mut c_void {
        self.pointers.as_ptr().cast_mut().cast()
    }

    fn check(&self, sizes: &[usize]) -> Result<(), String> {
        if sizes.len() != self.ranges.len() {
            return Err(format!(
                "the kernel takes {} arguments, got {}",
                sizes.len(),
                self.ranges.len()
            ));
        }
        for (index, (&expected, &(_, size))) in sizes.iter().zip(&self.ranges).enumerate() {
            if expected != size {
                return Err(format!(
                    "argument {index} has {size} bytes, the kernel's parameter has {expected}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_order_and_natural_alignment() {
        let mut args = Args::new();
        args.push(1u32)
            .push(2u64)
            .push(3u8)
            .push(0.5f32)
            .push(4u16)
            .pointer(5);
        assert_eq!(
            args.ranges(),
            [(0, 4), (8, 8), (16, 1), (20, 4), (24, 2), (32, 8)]
        );
        let bytes = args.to_bytes();
        assert_eq!(bytes.len(), 40);
        assert_eq!(bytes[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[20..24], 0.5f32.to_le_bytes());
        assert_eq!(bytes[32..], 5u64.to_le_bytes());
    }

    #[test]
    fn tensor_maps_are_aligned_to_64_bytes_in_the_block_and_in_memory() {
        let mut args = Args::new();
        let map = EncodedTensorMap::from_words(std::array::from_fn(|i| i as u64 + 1));
        args.push(7u32).tensor_map(&map).push(9u32).tensor_map(&map);
        assert_eq!(args.ranges(), [(0, 4), (64, 128), (192, 4), (256, 128)]);
        assert_eq!(args.to_bytes()[64..192], map.to_bytes());
        let bases: Vec<usize> = args.pointers.iter().map(|p| p.0.addr()).collect();
        assert_eq!(bases[1] % 64, 0);
        assert_eq!(bases[3] % 64, 0);
        assert_eq!(bases[2] - bases[0], 192);
    }

    #[test]
    fn a_pointer_is_replaced_in_place_and_only_a_pointer() {
        let mut args = Args::new();
        args.push(1u32).pointer(2).push(3u32);
        let bases: Vec<usize> = args.pointers.iter().map(|p| p.0.addr()).collect();
        args.set_pointer(1, 5).unwrap();
        assert_eq!(args.to_bytes()[8..16], 5u64.to_le_bytes());
        assert_eq!(args.to_bytes()[16..20], 3u32.to_le_bytes());
        assert!(args.pointers.iter().map(|p| p.0.addr()).eq(bases));
        for index in [0, 3] {
            let error = args.set_pointer(index, 5).unwrap_err().to_string();
            assert!(error.contains("its replacement has 8"), "{error}");
        }
    }

    #[test]
    fn a_cleared_list_has_no_stale_bytes_and_keeps_its_capacity() {
        let mut args = Args::new();
        args.push(u64::MAX).push(u64::MAX).push(u64::MAX);
        let capacity = (args.chunks.capacity(), args.ranges.capacity());
        args.clear();
        assert!(args.is_empty());
        args.push(1u8).push(2u64);
        assert_eq!(args.to_bytes()[1..8], [0; 7]);
        assert_eq!((args.chunks.capacity(), args.ranges.capacity()), capacity);
    }

    #[test]
    fn handles_are_send_and_sync() {
        fn assert_send_sync<T: Send + Sync>() {}
        assert_send_sync::<Args>();
        assert_send_sync::<Function>();
        assert_send_sync::<Stream>();
        assert_send_sync::<DeviceBuffer>();
        assert_send_sync::<crate::Event>();
        assert_send_sync::<crate::Context>();
        assert_send_sync::<crate::Driver>();
        assert_send_sync::<CudaError>();
    }
}
