//! The resources of a kernel, and whether they fit an SM.

use crate::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::builder::{Builder, Resources};

/// Returns the resources of the kernel that `declare` declares. Rejects a kernel whose CTA needs
/// more shared memory than an SM has; `what` names the cause in the error.
///
/// ```
/// use warpline_family::resources;
/// use warpline_ir::{Target, builder::Builder};
///
/// fn copy(k: Builder, stages: u32) {
///     k.ring("tiles", stages, |s| s.vector::<f32>(4096));
///     k.role("all").body(|| {});
/// }
/// let target = Target::SM_90A;
/// assert_eq!(resources("3 stages", &target, |k| copy(k, 3))?.threads, 32);
/// let error = resources("99 stages", &target, |k| copy(k, 99)).unwrap_err().to_string();
/// assert!(error.starts_with("99 stages need 16"));
/// # Ok::<(), warpline_family::FamilyError>(())
/// ```
pub fn resources(
    what: &str,
    target: &Target,
    declare: impl FnOnce(Builder),
) -> Result<Resources, FamilyError> {
    let resources = Resources::of(target, declare)?;
    let (needed, available) = (resources.shared_bytes, target.shared_bytes);
    match needed <= available {
        true => Ok(resources),
        false => Err(FamilyError::Config(format!(
            "{what} need {needed} bytes of shared memory; {} has {available}",
            target.name
        ))),
    }
}
