//! A call that borrows its tensors.

use super::layout::Layout;
use super::memory::{Element, Readable, Writable};
use super::met;
use super::stream::StreamOps;
use crate::error::Error;
use crate::ops::call::Call;
use cudarc::driver::{CudaStream, SyncOnDrop};
use warpline_kernels::op::TensorView;

/// A call of an op on cudarc's memory, which it borrows until it is launched
/// or dropped. What is not given has its default.
#[derive(Debug)]
#[must_use = "nothing happens before `launch`"]
pub struct StreamCall<'a> {
    ops: &'a StreamOps,
    call: Call,
    /// When dropped, each records in its slice's event how far the stream is,
    /// for cudarc's other streams to wait for.
    guards: Vec<SyncOnDrop<'a>>,
    /// The first tensor that belongs to another stream.
    stranger: Option<String>,
}

impl<'a> StreamCall<'a> {
    pub(super) fn new(ops: &'a StreamOps, call: Call) -> Self {
        Self {
            ops,
            call,
            guards: Vec::new(),
            stranger: None,
        }
    }

    /// With a tensor for a parameter: a slice, and the tensor's shape
    /// (`&[rows, cols]`) or [`Layout`] in it.
    pub fn input<T: Element>(
        mut self,
        name: &str,
        slice: &'a impl Readable<T>,
        layout: impl Into<Layout>,
    ) -> Result<Self, Error> {
        let mut view = self.view::<T>(name, slice.len(), slice.stream(), layout.into())?;
        // The stream waits here for what others write; nothing new can be
        // written while the slice is borrowed.
        let (address, guard) = slice.device_ptr(&self.ops.stream);
        view.address = address;
        self.guards.push(guard);
        self.call = self.call.tensor(name, view)?;
        Ok(self)
    }

    /// With the next output.
    pub fn output<T: Element>(
        mut self,
        slice: &'a mut impl Writable<T>,
        layout: impl Into<Layout>,
    ) -> Result<Self, Error> {
        let declared = self.call.op.signature.outputs.get(self.call.outs.len());
        let name = declared.map_or("the output beyond the last", |output| output.name);
        let mut view = self.view::<T>(name, slice.len(), slice.stream(), layout.into())?;
        // As for inputs, and for what others read.
        let (address, guard) = slice.device_ptr_mut(&self.ops.stream);
        view.address = address;
        self.guards.push(guard);
        self.call = self.call.out(view);
        Ok(self)
    }

    // Not `Call::value`: it takes a tensor at any address too.

    /// With a number for a parameter.
    pub fn number(mut self, name: &str, x: f64) -> Result<Self, Error> {
        self.call = self.call.value(name, x)?;
        Ok(self)
    }

    /// With an integer for a parameter.
    pub fn integer(mut self, name: &str, n: i64) -> Result<Self, Error> {
        self.call = self.call.value(name, n)?;
        Ok(self)
    }

    /// With integers, or pairs of them one after the other, for a parameter.
    pub fn integers(mut self, name: &str, all: &[i64]) -> Result<Self, Error> {
        self.call = self.call.value(name, all.to_vec())?;
        Ok(self)
    }

    /// Puts the op into the stream, and waits for nothing. The first call of
    /// a kind compiles its kernels.
    ///
    /// Refused are slices that were allocated in another stream, and a stream
    /// that is captured.
    pub fn launch(self) -> Result<(), Error> {
        if let Some(name) = &self.stranger {
            return self.call.refuse(format!(
                "{name} was allocated in another stream, so that it could be freed before the \
                 launch is done: allocate it in this one, or use the unsafe `launch_across`"
            ));
        }
        #[allow(unsafe_code, reason = "what is borrowed keeps the promise")]
        // SAFETY: every slice belongs to this stream. cudarc frees a slice in
        // the order of its stream, so behind the launch, also if it is dropped
        // right after this; and the stream cannot be another one by then, as
        // the slice keeps it.
        //
        // Other work in this stream is in order. What other streams do is
        // ordered by cudarc's events, or, where its user has turned them off,
        // by what that user promised (`disable_event_tracking` is unsafe).
        // Where the events fall short (see `launch_across`), bytes may be read
        // while they change. That gives wrong numbers, as it does with
        // cudarc's own copies, and no wrong address: ops take none from their
        // tensors, and read a place in a map once and keep it inside.
        unsafe {
            self.launch_across()
        }
    }

    /// As [`launch`](Self::launch), also with slices that were allocated in
    /// other streams of the device.
    ///
    /// The stream waits for cudarc's events of each slice, and records its own
    /// in them. That is not enough to make this safe, as cudarc 0.19
    /// - remembers the last read of a slice only, so that reads in two streams
    ///   leave one of them that nobody waits for;
    /// - stops waiting when the last stream that it made is dropped, though
    ///   work in it may still run;
    /// - records nothing when a slice is allocated, so that a slice from
    ///   `alloc` may be used before its stream has allocated it.
    ///
    /// # Safety
    /// The memory of slices of other streams is allocated when this stream
    /// gets to the launch, and not freed before it is done; and other work on
    /// them is ordered before or after it.
    #[allow(unsafe_code, reason = "states what callers promise of other streams")]
    pub unsafe fn launch_across(self) -> Result<(), Error> {
        let Self {
            ops, call, guards, ..
        } = self;
        let stream = ops.borrowed()?;
        if stream.is_capturing()? {
            return call.refuse(
                "the stream is captured, and a graph can be replayed when the borrowed slices \
                 are gone: use the unsafe `Call::launch`"
                    .into(),
            );
        }
        let cudarc = ops.stream.context();
        // cudarc keeps the error of a wait that failed until it is asked.
        cudarc
            .check_err()
            .map_err(met("cudarc before the launch"))?;
        // SAFETY: every slice is on the stream's device and holds what its
        // layout reaches (`view`), its type is cudarc's own, so that length
        // and address are true, and outputs are borrowed alone. That its
        // memory lives and is in order, the caller promises. `ops` keeps the
        // stream, and waits for it before it lets go; it is not captured.
        let done = unsafe { ops.launch(&call, &stream) };
        drop(guards);
        let recorded = cudarc.check_err().map_err(met("cudarc after the launch"));
        if recorded.is_err() {
            // Others could not wait for this launch, so it is waited for here.
            let _ = ops.stream.synchronize();
        }
        done.and(recorded)
    }

    /// A tensor in a slice of that many elements and of that stream, which
    /// has no address yet.
    fn view<T: Element>(
        &mut self,
        name: &str,
        len: usize,
        owner: &CudaStream,
        layout: Layout,
    ) -> Result<TensorView, Error> {
        let stream = &*self.ops.stream;
        if owner.context() != stream.context() {
            let (there, here) = (owner.context().ordinal(), stream.context().ordinal());
            return self.call.refuse(match there == here {
                true => format!("{name} is in another context of cuda:{here} than the stream"),
                false => format!("{name} is on cuda:{there}, and the stream on cuda:{here}"),
            });
        }
        if owner != stream && self.stranger.is_none() {
            self.stranger = Some(name.to_owned());
        }
        match layout.within(T::DTYPE, len) {
            Ok(view) => Ok(view),
            Err(why) => self.call.refuse(format!("{name} {why}")),
        }
    }
}
