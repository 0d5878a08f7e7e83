//! A call that borrows its tensors.

use super::driver_error;
use super::layout::SliceLayout;
use super::memory::{CudarcElement, Readable, Writable};
use super::stream::StreamOps;
use crate::error::Error;
use crate::ops::call::Call;
use cudarc::driver::{CudaStream, SyncOnDrop};
use warpline_kernels::op::TensorView;

/// A call of an op on cudarc memory, which it borrows until it is launched or dropped. Parameters that
/// are not set have their defaults.
#[derive(Debug)]
#[must_use = "nothing happens before `launch`"]
pub struct StreamCall<'a> {
    ops: &'a StreamOps,
    call: Call,
    /// When dropped, each guard records an event of the stream in its slice, on which cudarc's other
    /// streams wait.
    guards: Vec<SyncOnDrop<'a>>,
    /// The first tensor that belongs to another stream.
    foreign_tensor: Option<String>,
}

impl<'a> StreamCall<'a> {
    pub(super) fn new(ops: &'a StreamOps, call: Call) -> Self {
        Self {
            ops,
            call,
            guards: Vec::new(),
            foreign_tensor: None,
        }
    }

    /// Sets a tensor parameter: a slice, and the shape (`&[rows, cols]`) or [`SliceLayout`] of the tensor
    /// in it.
    pub fn input<T: CudarcElement>(
        mut self,
        name: &str,
        slice: &'a impl Readable<T>,
        layout: impl Into<SliceLayout>,
    ) -> Result<Self, Error> {
        let mut view = self.view::<T>(name, slice.len(), slice.stream(), layout.into())?;
        // The stream waits for earlier writes of other streams; the borrow
        // prevents new ones.
        let (address, guard) = slice.device_ptr(&self.ops.stream);
        view.address = address;
        self.guards.push(guard);
        self.call = self.call.tensor(name, view)?;
        Ok(self)
    }

    /// Adds the next output.
    pub fn output<T: CudarcElement>(
        mut self,
        slice: &'a mut impl Writable<T>,
        layout: impl Into<SliceLayout>,
    ) -> Result<Self, Error> {
        let output = self.call.op.signature.outputs.get(self.call.outs.len());
        let name = output.map_or("the extra output", |output| output.name);
        let mut view = self.view::<T>(name, slice.len(), slice.stream(), layout.into())?;
        // The stream also waits for earlier reads of other streams.
        let (address, guard) = slice.device_ptr_mut(&self.ops.stream);
        view.address = address;
        self.guards.push(guard);
        self.call = self.call.out(view);
        Ok(self)
    }

    // `Call::value` is not exposed, because it accepts a tensor at any address.

    /// Sets a number parameter.
    pub fn number(mut self, name: &str, x: f64) -> Result<Self, Error> {
        self.call = self.call.value(name, x)?;
        Ok(self)
    }

    /// Sets an integer parameter.
    pub fn integer(mut self, name: &str, n: i64) -> Result<Self, Error> {
        self.call = self.call.value(name, n)?;
        Ok(self)
    }

    /// Sets a parameter to a list of integers; pairs are flattened.
    pub fn integers(mut self, name: &str, all: &[i64]) -> Result<Self, Error> {
        self.call = self.call.value(name, all.to_vec())?;
        Ok(self)
    }

    /// Enqueues the op in the stream without waiting. The first call of a class compiles its kernels.
    ///
    /// Rejects slices that were allocated in another stream, and a stream that is captured.
    pub fn launch(self) -> Result<(), Error> {
        if let Some(name) = &self.foreign_tensor {
            return self.call.reject(format!(
                "{name} was allocated in another stream, which could free it before the launch is \
                 done\nhelp: allocate it in this stream, or use the unsafe `launch_across`"
            ));
        }
        #[allow(unsafe_code, reason = "the borrows uphold the guarantees")]
        // SAFETY: every slice belongs to this stream. cudarc frees a slice in
        // stream order, so after the launch, even if it is dropped right after
        // this call. The slice keeps its stream alive.
        //
        // Work in this stream is ordered. cudarc's events order the work of
        // other streams; if the user turned them off, the user guarantees the
        // order (`disable_event_tracking` is unsafe). Where the events are
        // insufficient (see `launch_across`), bytes may be read while they
        // change. That gives wrong values, as with cudarc's own copies, but no
        // invalid address: ops read no addresses from their tensors, and they
        // read each index once and clamp it.
        unsafe {
            self.launch_across()
        }
    }

    /// Launches as [`launch`](Self::launch) does, but also accepts slices that were allocated in other
    /// streams of the device.
    ///
    /// The stream waits for cudarc's events of each slice and records its own events. That is not
    /// sufficient for safety, because cudarc 0.19
    /// - records only the last read of a slice, so that after reads in two streams nothing waits for
    ///   one of them;
    /// - stops waiting when the last stream that it created is dropped, although its work may still
    ///   run;
    /// - records nothing when a slice is allocated, so that a slice from `alloc` may be used before
    ///   its stream has allocated it.
    ///
    /// # Safety
    /// The memory of slices of other streams is allocated before the launch starts and freed after it
    /// is done. Other work on them is ordered before or after the launch.
    #[allow(unsafe_code, reason = "callers guarantee the order of other streams")]
    pub unsafe fn launch_across(self) -> Result<(), Error> {
        let Self {
            ops, call, guards, ..
        } = self;
        let stream = ops.as_stream()?;
        if stream.is_capturing()? {
            return call.reject(
                "the stream is captured, and the graph could be replayed after the borrowed slices are \
                 freed\nhelp: use the unsafe `Call::launch`"
                    .into(),
            );
        }
        let cudarc = ops.stream.context();
        // cudarc stores the error of a failed wait until `check_err`.
        cudarc
            .check_err()
            .map_err(driver_error("cudarc before the launch"))?;
        // SAFETY: every slice is on the stream's device and contains its layout
        // (`view`). Its type belongs to cudarc, so length and address are
        // valid. Outputs are mutably borrowed. The caller guarantees lifetime
        // and order. `ops` keeps the stream and synchronizes it before it is
        // dropped; the stream is not captured.
        let done = unsafe { ops.launch(&call, &stream) };
        drop(guards);
        let recorded = cudarc
            .check_err()
            .map_err(driver_error("cudarc after the launch"));
        if recorded.is_err() {
            // Other streams could not wait for this launch, so wait for it here.
            let _ = ops.stream.synchronize();
        }
        done.and(recorded)
    }

    /// Returns a tensor in a slice of `len` elements of the stream `owner`, without an address.
    fn view<T: CudarcElement>(
        &mut self,
        name: &str,
        len: usize,
        owner: &CudaStream,
        layout: SliceLayout,
    ) -> Result<TensorView, Error> {
        let stream = &*self.ops.stream;
        if owner.context() != stream.context() {
            let (there, here) = (owner.context().ordinal(), stream.context().ordinal());
            return self.call.reject(match there == here {
                true => format!("{name} and the stream are in different contexts of cuda:{here}"),
                false => format!("{name} is on cuda:{there}, but the stream is on cuda:{here}"),
            });
        }
        if owner != stream && self.foreign_tensor.is_none() {
            self.foreign_tensor = Some(name.to_owned());
        }
        match layout.within(T::DTYPE, len) {
            Ok(view) => Ok(view),
            Err(why) => self.call.reject(format!("{name} {why}")),
        }
    }
}
