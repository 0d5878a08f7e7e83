//! What a kernel takes of an SM, without building its code.

use super::declare::Builder;
use super::{finish, state};
use crate::error::BuildErrors;
use crate::program::Role;
use crate::target::Target;

/// What a kernel takes of an SM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Threads of a CTA.
    pub threads: u32,
    /// Bytes of shared memory of a CTA.
    pub shared_bytes: u32,
    /// CTAs of a cluster.
    pub cluster: u32,
    /// The roles, by ascending first warp.
    pub roles: Vec<RoleResources>,
}

/// What a role takes of an SM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleResources {
    /// Its name.
    pub name: String,
    /// Its warps.
    pub warps: u32,
    /// Its register budget for `setmaxnreg`; none keeps the launch default.
    pub registers: Option<u32>,
}

impl Resources {
    /// Returns the resources of the kernel that `body` declares. The bodies of roles do not run:
    /// the pass takes microseconds, and its sizes are those of the kernel.
    ///
    /// ```
    /// use warpline_ir::build::*;
    /// use warpline_ir::{Kernel, Target};
    ///
    /// fn copy(k: Builder, stages: u32) {
    ///     let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    ///     let ring = k.ring("tiles", stages, |s| s.vector::<f32>(1024));
    ///     k.role("load").body(|| elect(|| {
    ///         let slot = ring.acquire();
    ///         slot.load_bytes(slot.tiles(), x.address(0u32), 4096u32);
    ///         slot.commit();
    ///     }));
    ///     k.role("store").body(|| elect(|| {
    ///         let slot = ring.wait();
    ///         bulk_store(slot.tiles(), y.address(0u32), 4096u32);
    ///         bulk_commit();
    ///         bulk_wait(0);
    ///         slot.release();
    ///     }));
    /// }
    /// let target = Target::SM_90A;
    /// let resources = Resources::of(&target, |k| copy(k, 3))?;
    /// let kernel = Kernel::build("copy", &target, |k| copy(k, 3))?;
    /// assert_eq!(resources.shared_bytes, kernel.shared_bytes);
    /// assert_eq!(resources.threads, 64);
    /// # Ok::<(), warpline_ir::BuildErrors>(())
    /// ```
    pub fn of(target: &Target, body: impl FnOnce(Builder)) -> Result<Self, BuildErrors> {
        let open = state::declare_only(target);
        body(Builder::new());
        let kernel = finish::finish(open.close())?;
        let role = |r: &Role| RoleResources {
            name: r.name.clone(),
            warps: r.warps,
            registers: r.registers,
        };
        Ok(Self {
            threads: kernel.threads(),
            shared_bytes: kernel.shared_bytes,
            cluster: kernel.cluster_size(),
            roles: kernel.roles.iter().map(role).collect(),
        })
    }
}
