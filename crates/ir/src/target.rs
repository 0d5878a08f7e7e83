//! The machines a kernel can be printed for, as values.

/// What a GPU offers to one kernel. Readers ask the target; none knows a GPU by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The name ptxas and PTX use, for example `sm_90a`.
    pub name: &'static str,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Shared memory one CTA can have, in bytes.
    pub shared_bytes: u32,
    /// Registers of one SM.
    pub registers: u32,
    /// The most registers one thread can have.
    pub registers_per_thread: u32,
    /// The most threads of one CTA.
    pub threads: u32,
    /// The most CTAs of a cluster; above 8 a device may have no room for it, and is asked.
    pub cluster: u32,
    /// Named barriers of one CTA.
    pub named_barriers: u32,
    /// SMs of the part we model when no device is asked.
    pub sms: u32,
    /// Instruction groups beyond the common ones.
    pub features: Features,
}

/// Instruction groups that not every target has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// Warpgroup matrix products.
    pub wgmma: bool,
    /// Bulk copies and tensor maps.
    pub tma: bool,
    /// Moving registers between warpgroups.
    pub setmaxnreg: bool,
    /// Clusters of CTAs.
    pub clusters: bool,
}

impl Default for Target {
    /// The target of kernels that nobody asks for by name: Hopper.
    fn default() -> Self {
        Self::SM_90A
    }
}

impl Target {
    /// Every target, the oldest first.
    pub const ALL: [Target; 1] = [Self::SM_90A];

    /// Returns the target that ptxas and PTX call so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name == name)
    }

    /// Returns the target of a GPU with this compute capability.
    pub fn with_capability(capability: (u32, u32)) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|target| target.capability == capability)
    }

    /// Hopper: H100, H200.
    pub const SM_90A: Target = Target {
        name: "sm_90a",
        capability: (9, 0),
        shared_bytes: 232_448,
        registers: 65_536,
        registers_per_thread: 255,
        threads: 1024,
        cluster: 16,
        named_barriers: 16,
        sms: 132,
        features: Features {
            wgmma: true,
            tma: true,
            setmaxnreg: true,
            clusters: true,
        },
    };

    /// The registers each thread enters a CTA of `threads` threads with, when
    /// one CTA owns the SM and registers are moved between its warpgroups.
    ///
    /// ptxas counts whole warpgroups (288 threads get what 384 do), and the
    /// hardware hands registers out in units of 8 per thread.
    ///
    /// ```
    /// use warpline_ir::Target;
    /// assert_eq!(Target::SM_90A.entry_registers(384), 168);
    /// assert_eq!(Target::SM_90A.entry_registers(288), 168);
    /// assert_eq!(Target::SM_90A.entry_registers(512), 128);
    /// ```
    pub fn entry_registers(&self, threads: u32) -> u32 {
        let whole = threads.max(1).div_ceil(128).saturating_mul(128);
        let each = self.registers / whole / 8 * 8;
        each.min(self.registers_per_thread / 8 * 8)
    }
}
