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
    clock: 1.822e9,
    /// Launch overhead in seconds, with the latency of the first loads.
    launch: 3.435e-6,
    /// Extra cycles of a launch in clusters, for each doubling of their size.
    cluster: 1180.0,
    /// Bytes that an SM loads per cycle.
    load: 149.7,
    /// L2 bandwidth of all SMs in bytes per second; CTAs share lines that they load at the same time.
    l2: 1.839e13,
    /// The same for bytes that no other SM loads at the same time.
    l2_distinct: 1.749e13,
    /// Load latency in cycles, which the stages in flight hide.
    latency: 1169.0,
    /// Cycles of latency for each byte of a k-tile.
    latency_byte: 0.01933,
    /// The slowdown for each doubling of K, as CTAs drift apart and share fewer lines.
    drift: 0.0001967,
    /// Bandwidth of out-of-bounds rows, which TMA fills with zeros, in bytes per second of all SMs.
    out_of_bounds: 1.122e12,
    /// Extra cost of loads of rows that straddle 32-byte sectors.
    straddling_reads: 1.199,
    /// Extra cost of stores of such rows in 64-byte parts.
    straddling_writes: 0.0001382,
    /// Cycles of a narrow wgmma, which shared memory bounds.
    narrow_wgmma: 38.11,
    /// Cycles of an epilogue.
    epilogue: 3.619,
    /// Cycles of each part of a tile of C that is staged.
    part: 583.3,
    /// Cycles that a part waits for a single staging tile to drain.
    staging_wait: 133.6,
    /// The share of an epilogue that is visible if the next tile is loaded meanwhile.
    overlapped_epilogue: 0.8414,
    /// Cycles of an epilogue per 16-bit value.
    epilogue_value: 0.0809,
    /// Cycles per value of an expensive activation.
    activation_value: 0.1535,
    /// Cycles per value of a bias.
    bias_value: 0.05148,
    /// Cycles per value of a residual.
    residual_value: 0.1711,
    /// Cost of storing C element by element, relative to TMA.
    by_element: 6.7,
    /// Ping-pong: cycles of a switch between tiles.
    switch: 729.2,
    /// Ping-pong: the share of an epilogue that the other consumer's wgmmas must hide.
    hidden_share: 0.1536,
    /// Ping-pong: the visible share of the last epilogue.
    last_epilogue: 0.7393,
    /// Double buffer: unhidden cycles per k-tile.
    unhidden: 0.02112,
    /// Split-K: cycles of an exchange through the cluster.
    split_k: 2111.0,
    /// Split-K: cycles of an exchange for each further CTA.
    split_k_part: 0.05996,
    /// Split-K: cycles of an exchange for each accumulator of a further CTA.
    split_k_value: 0.08745,
    /// Split-K in memory: cycles of an exchange.
    memory_exchange: 731.4,
    /// Split-K in memory: cycles of an exchange for each further CTA.
    memory_part: 803.4,
    /// Split-K in memory: cycles of an exchange for each accumulator of a CTA.
    memory_value: 0.3209,
    /// Stream-K: cycles of an exchange through memory.
    stream_k: 1.003e+04,
    /// Stream-K: cycles of an exchange per accumulator.
    stream_k_value: 0.004649,
    /// Stream-K: cycles of an exchange per accumulator, for each CTA beyond two that shares a tile.
    stream_k_part_value: 0.1949,
    /// Stream-K: cycles of waiting per k-tile of a CTA.
    stream_k_k_tile: 61.25,
    /// The slowdown of loads that a cluster shares: each slot waits for the slowest CTA.
    multicast: 0.1735,
    /// Gather: cycles until the loads of a group arrive.
    gather_group: 1499.0,
    /// Gather: cycles per load of a warp.
    gather_load: 28.25,
    /// Bytes per second that a copy of an operand reads and writes.
    copy: 4.319e12,
    /// Launch overhead of a copy in seconds.
    copy_launch: 3.222e-6,
    /// Time of two consecutive kernels relative to the sum of both. Not fitted.
    two_kernels: 1.026,
    /// The slowdown at the power limit.
    power: 0.2147,
    /// At the power limit, every moved byte costs time: the slowdown per byte of a stage and multiply-
    /// add.
    power_of_moves: 0.007797,
    /// The operations of a GEMM that reaches the power limit.
    power_flops: 8.435e11,
}
