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
    clock: 1.834e9,
    /// Launch overhead in seconds, with the latency of the first loads.
    launch: 3.215e-6,
    /// Extra cycles of a launch in clusters, for each doubling of their size.
    cluster: 1171.0,
    /// Bytes that an SM loads per cycle.
    load: 121.0,
    /// L2 bandwidth of all SMs in bytes per second; CTAs share lines that they load at the same time.
    l2: 1.669e13,
    /// The same for bytes that no other SM loads at the same time.
    l2_distinct: 1.458e13,
    /// Load latency in cycles, which the stages in flight hide.
    latency: 1167.0,
    /// Cycles of latency for each byte of a k-tile.
    latency_byte: 0.01924,
    /// Bandwidth of out-of-bounds rows, which TMA fills with zeros, in bytes per second of all SMs.
    out_of_bounds: 1.144e12,
    /// Extra cost of loads of rows that straddle 32-byte sectors.
    straddling_reads: 0.9365,
    /// Cycles of a narrow wgmma, which shared memory bounds.
    narrow_wgmma: 36.15,
    /// Cycles of each part of a tile of C that is staged.
    part: 544.0,
    /// Cycles that a part waits for a single staging tile to drain.
    staging_wait: 34.79,
    /// The share of an epilogue that is visible if the next tile is loaded meanwhile.
    overlapped_epilogue: 0.8366,
    /// Cycles of an epilogue per 16-bit value.
    epilogue_value: 0.09718,
    /// Cycles per value of an expensive activation.
    activation_value: 0.1721,
    /// Cycles per value of a bias.
    bias_value: 0.03497,
    /// Cycles per value of a residual.
    residual_value: 0.1385,
    /// Cost of storing C element by element, relative to TMA.
    by_element: 4.568,
    /// Ping-pong: cycles of a switch between tiles.
    switch: 740.9,
    /// Ping-pong: the share of an epilogue that the other consumer's wgmmas must hide.
    hidden_share: 0.1583,
    /// Ping-pong: the visible share of the last epilogue.
    last_epilogue: 0.9839,
    /// Split-K: cycles of an exchange through the cluster.
    split_k: 1658.0,
    /// Split-K: cycles of an exchange for each accumulator of a further CTA.
    split_k_value: 0.08343,
    /// Extra cycles of a swap-AB kernel for each consumer.
    swap_ab_consumer: 438.9,
    /// Split-K in memory: cycles of an exchange.
    memory_exchange: 3288.0,
    /// Split-K in memory: cycles of an exchange for each further CTA.
    memory_part: 1037.0,
    /// Split-K in memory: cycles of an exchange for each accumulator of a CTA.
    memory_value: 0.2629,
    /// Stream-K: cycles of an exchange through memory.
    stream_k: 9300.0,
    /// Stream-K: cycles of an exchange per accumulator, for each CTA beyond two that shares a tile.
    stream_k_part_value: 0.219,
    /// The slowdown of loads that a cluster shares: each slot waits for the slowest CTA.
    multicast: 0.1234,
    /// Gather: cycles until the loads of a group arrive.
    gather_group: 1496.0,
    /// Gather: cycles per load of a warp.
    gather_load: 21.37,
    /// Bytes per second that a copy of an operand reads and writes.
    copy: 4.479e12,
    /// Launch overhead of a copy in seconds.
    copy_launch: 3.014e-6,
    /// Time of two consecutive kernels relative to the sum of both.
    two_kernels: 1.029,
    /// The slowdown at the power limit.
    power: 0.2205,
    /// The operations of a GEMM that reaches the power limit.
    power_flops: 8.218e11,
}
