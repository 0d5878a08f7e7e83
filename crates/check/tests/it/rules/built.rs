//! Kernels written with the builder, and the lines where they break a rule.

use warpline_check::check;
use warpline_ir::build::Builder;
use warpline_ir::{Frame, Kernel, Target};

/// The code of a rule, the line that breaks it, and the other side's line.
pub(crate) type Breach = (&'static str, u32, Option<u32>);

/// A kernel of correct syntax.
#[track_caller]
pub(crate) fn kernel(body: impl FnOnce(Builder)) -> Kernel {
    Kernel::build("k", body).unwrap_or_else(|e| panic!("{e}"))
}

/// All breaches of a kernel.
#[track_caller]
pub(crate) fn breaches(kernel: &Kernel) -> Vec<Breach> {
    let line = |at: Option<Frame>| at.map_or(0, |f| f.line);
    let refused = check(kernel.clone(), &Target::SM_90A).err();
    let breach = |r: &warpline_check::Refusal| {
        let other = r.others.first().map(|o| line(o.at));
        (r.code(), line(r.at), other)
    };
    refused
        .iter()
        .flat_map(|r| &r.refusals)
        .map(breach)
        .collect()
}

/// Expects a kernel to be proved; tells what is said of it otherwise.
#[track_caller]
pub(crate) fn proved(kernel: &Kernel) {
    let Err(refused) = check(kernel.clone(), &Target::SM_90A) else {
        return;
    };
    let events = refused.refusals.iter().flat_map(|r| &r.trace);
    let trace: Vec<String> = events.map(|e| format!("{}: {}", e.who, e.what)).collect();
    panic!("{refused}\n{}", trace.join("\n"));
}

/// The codes of no breach.
pub(crate) const NONE: [&str; 0] = [];

/// The codes of all breaches of a kernel.
#[track_caller]
pub(crate) fn codes(kernel: &Kernel) -> Vec<&'static str> {
    breaches(kernel).iter().map(|b| b.0).collect()
}
