//! Plans bound to other addresses again and again.

use super::loaded_plan::BoundPlan;
use crate::error::Error;
use crate::prepare::PreparedStep;
use warpline_cuda::{Context, Stream};
use warpline_kernels::{Address, BufferAddresses, PlanArg};

/// A bound plan that remembers which arguments have addresses. Another set of addresses patches those
/// that differ in place, which neither allocates nor encodes a tensor map.
#[derive(Debug)]
pub(crate) struct ReboundPlan {
    plan: BoundPlan,
    context: Context,
    slots: Vec<Slot>,
}

/// An argument with an address.
#[derive(Debug)]
struct Slot {
    launch: usize,
    arg: usize,
    at: Address,
    kind: SlotKind,
    /// The current address.
    address: u64,
}

#[derive(Debug)]
enum SlotKind {
    /// A pointer to a multiple of some bytes.
    Pointer {
        align: u64,
    },
    TensorMap,
}

impl ReboundPlan {
    /// Returns the plan with its slots; `plan` is bound to `addresses`.
    pub(super) fn new<'a>(
        plan: BoundPlan,
        steps: impl Iterator<Item = &'a PreparedStep>,
        context: &Context,
        addresses: &BufferAddresses,
    ) -> Self {
        let slots = steps.enumerate().flat_map(|(launch, step)| {
            let args = step.kernel.params.iter().zip(step.step().args());
            args.enumerate().filter_map(move |(arg, (param, value))| {
                let (at, kind) = match value {
                    PlanArg::Scalar(..) => return None,
                    PlanArg::Pointer(at) => {
                        let align = param.bounds.multiple_of.max(1);
                        (*at, SlotKind::Pointer { align })
                    }
                    PlanArg::TensorMap { at, .. } => (*at, SlotKind::TensorMap),
                };
                Some(Slot {
                    launch,
                    arg,
                    at,
                    kind,
                    address: addresses.address(at),
                })
            })
        });
        Self {
            slots: slots.collect(),
            context: context.clone(),
            plan,
        }
    }

    /// Patches the addresses that differ. Returns false if one breaks a rule of its parameter, which
    /// [`LoadedPlan::bind`](super::LoadedPlan::bind) reports. The plan must not be launched after
    /// false or an error.
    pub(crate) fn rebind(&mut self, addresses: &BufferAddresses) -> Result<bool, Error> {
        for slot in &mut self.slots {
            let address = addresses.address(slot.at);
            if address == slot.address {
                continue;
            }
            let Some(args) = self.plan.args(slot.launch) else {
                return Ok(false);
            };
            match slot.kind {
                SlotKind::Pointer { align } if address.is_multiple_of(align) => {
                    args.set_pointer(slot.arg, address)?;
                }
                SlotKind::TensorMap if address != 0 && address.is_multiple_of(16) => {
                    args.set_tensor_address(&self.context, slot.arg, address)?;
                }
                _ => return Ok(false),
            }
            slot.address = address;
        }
        Ok(true)
    }

    /// Enqueues the plan's kernels in a stream, in order.
    pub(crate) fn launch(&self, stream: &Stream) -> Result<(), Error> {
        self.plan.launch(stream)
    }
}
