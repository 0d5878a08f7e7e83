//! The fitted constants of the model.

/// Declares the constants, and access to them by index for a fit.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $value:expr,)*) => {
        /// Machine constants.
        #[derive(Clone, Copy, Debug)]
        pub struct Constants {
            $($(#[$doc])* pub $name: f64,)*
        }

        impl Constants {
            /// The constants fitted to H200 timings.
            pub const FITTED: Self = Self { $($name: $value,)* };
            /// The name of each constant.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Returns the value of each constant, in the order of the names.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name),*]
            }

            /// Returns constants with the values of an iterator; missing ones keep their fitted value.
            pub fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
                let mut values = values.into_iter();
                Self { $($name: values.next().unwrap_or(Self::FITTED.$name),)* }
            }
        }
    };
}

constants! {
    /// Cycles per second.
    clock: 1.6e9,
    /// Memory bandwidth in bytes per second for rows of 128 bytes.
    memory: 3.67e12,
    /// The relative gain of rows of 256 bytes.
    long_rows: 0.02,
    /// L2 bandwidth of one SM in bytes per cycle.
    l2: 76.0,
    /// CTAs that drift apart wait for the L2: the ratio of load time to tensor core time above which
    /// they do.
    l2_contention_from: 0.82,
    /// The slowdown per unit of the excess.
    l2_contention: 0.8,
    /// Bandwidth of out-of-bounds rows, which TMA fills with zeros, in bytes per second of all SMs:
    /// far below that of memory.
    out_of_bounds: 0.915e12,
    /// Load latency in cycles, which the stages in flight hide.
    latency: 1235.0,
    /// Cycles until the first stage is full.
    first_stage: 3700.0,
    /// Launch overhead in seconds.
    launch: 2.3e-6,
    /// Cycles of an epilogue.
    epilogue: 1340.0,
    /// Cycles of an epilogue per value.
    epilogue_value: 0.019,
    /// Cycles that a part waits for a single staging tile to drain.
    staging_wait: 230.0,
    /// Cycles per value of an expensive activation.
    activation_value: 0.147,
    /// Cycles per value of a bias.
    bias_value: 0.02,
    /// Cycles per value of a residual.
    residual_value: 0.05,
    /// Ping-pong: cycles of a switch between tiles.
    switch: 560.0,
    /// Ping-pong: the share of an epilogue that the other consumer's wgmmas must hide.
    hidden_share: 0.29,
    /// Ping-pong: the visible share of the last epilogue.
    last_epilogue: 0.72,
    /// Double buffer: unhidden cycles per k-tile.
    unhidden: 1600.0,
    /// Stream-K: cycles of an exchange through memory.
    stream_k: 13100.0,
    /// Stream-K: cycles of an exchange per accumulator.
    stream_k_value: 0.384,
    /// Split-K: cycles per accumulator of an exchange through the cluster.
    split_k: 0.92,
    /// Extra cost of reads of rows that straddle 32-byte sectors.
    misaligned_reads: 0.95,
    /// Extra cost of writes of such rows in 32-byte parts.
    misaligned_writes: 2.65,
    /// Gather: cycles until the loads of a group arrive.
    gather_group: 700.0,
    /// Gather: cycles per load of a warp.
    gather_load: 8.0,
    /// Bytes per second that a copy of an operand reads and writes. Not fitted.
    copy: 2.5e12,
    /// Cost of storing C element by element, relative to TMA. Not fitted.
    by_element: 8.0,
    /// Time of two consecutive kernels relative to the sum of both.
    two_kernels: 1.01,
    /// At the power limit, every moved byte costs time: the slowdown per byte of a stage and
    /// multiply-add.
    power_slowdown: 12.0,
    /// The operations of a GEMM that reaches the power limit.
    power_flops: 5e11,
}
