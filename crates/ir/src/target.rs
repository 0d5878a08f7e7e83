//! GPU targets and their limits.

/// A GPU architecture and its limits. Code reads limits and features from the target instead
/// of testing its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The PTX name, for example `sm_90a`.
    pub name: &'static str,
    /// The compute capability, major and minor.
    pub capability: (u32, u32),
    /// The maximum shared memory of a CTA in bytes.
    pub shared_bytes: u32,
    /// The registers of an SM.
    pub registers: u32,
    /// The maximum registers of a thread.
    pub registers_per_thread: u32,
    /// The maximum threads of a CTA.
    pub threads: u32,
    /// The maximum CTAs of a cluster. Sizes above 8 are non-portable; the runtime queries the device.
    pub cluster: u32,
    /// The named barriers of a CTA.
    pub named_barriers: u32,
    /// The number of SMs to assume without a device.
    pub sms: u32,
    /// The optional instruction groups.
    pub features: Features,
}

/// Instruction groups that not every target has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// `wgmma`.
    pub wgmma: bool,
    /// TMA: bulk copies and tensor maps.
    pub tma: bool,
    /// `setmaxnreg`.
    pub setmaxnreg: bool,
    /// Thread block clusters.
    pub clusters: bool,
}

impl Default for Target {
    /// Returns the default target, Hopper.
    fn default() -> Self {
        Self::SM_90A
    }
}

impl Target {
    /// All targets, the oldest first.
    pub const ALL: [Target; 1] = [Self::SM_90A];

    /// Returns the target with this PTX name.
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

    /// Returns the registers per thread at launch for a CTA of `threads` threads that occupies
    /// the SM alone and uses `setmaxnreg`.
    ///
    /// ptxas counts whole warpgroups (288 threads get as many as 384), and the hardware
    /// allocates registers in units of 8 per thread.
    ///
    /// ```
    /// use warpline_ir::Target;
    /// assert_eq!(Target::SM_90A.entry_registers(384), 168);
    /// assert_eq!(Target::SM_90A.entry_registers(288), 168);
    /// assert_eq!(Target::SM_90A.entry_registers(512), 128);
    /// ```
    pub fn entry_registers(&self, threads: u32) -> u32 {
        let allocated_threads = threads.max(1).div_ceil(128).saturating_mul(128);
        let per_thread = self.registers / allocated_threads / 8 * 8;
        per_thread.min(self.registers_per_thread / 8 * 8)
    }
}
