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
    clock: 1.756e9,
    /// Launch overhead in seconds, with the latency of the first loads.
    launch: 3.059e-6,
    /// Extra cycles of a launch in clusters, for each doubling of their size.
    cluster: 1600.0,
    /// Bytes that an SM loads per cycle.
    load: 113.0,
    /// L2 bandwidth of all SMs in bytes per second; CTAs share lines that they load at the same time.
    l2: 1.526e13,
    /// Load latency in cycles, which the stages in flight hide.
    latency: 1538.0,
    /// The slowdown for each doubling of K, as CTAs drift apart and share fewer lines.
    drift: 0.006479,
    /// Bandwidth of out-of-bounds rows, which TMA fills with zeros, in bytes per second of all SMs.
    out_of_bounds: 1.224e12,
    /// Extra cost of loads of rows that straddle 32-byte sectors.
    straddling_reads: 1.068,
    /// Extra cost of stores of such rows in 64-byte parts.
    straddling_writes: 0.0176,
    /// Cycles of a narrow wgmma, which shared memory bounds.
    narrow_wgmma: 40.13,
    /// Cycles of an epilogue.
    epilogue: 442.8,
    /// Cycles of each part of a tile of C that is staged.
    part: 439.6,
    /// Cycles that a part waits for a single staging tile to drain.
    staging_wait: 16.48,
    /// The share of an epilogue that is visible if the next tile is loaded meanwhile.
    overlapped_epilogue: 0.6852,
    /// Cycles of an epilogue per 16-bit value.
    epilogue_value: 0.08015,
    /// Cycles per value of an expensive activation.
    activation_value: 0.1597,
    /// Cycles per value of a bias.
    bias_value: 0.005398,
    /// Cycles per value of a residual.
    residual_value: 0.1577,
    /// Cost of storing C element by element, relative to TMA.
    by_element: 5.263,
    /// Ping-pong: cycles of a switch between tiles.
    switch: 819.4,
    /// Ping-pong: the share of an epilogue that the other consumer's wgmmas must hide.
    hidden_share: 0.2426,
    /// Ping-pong: the visible share of the last epilogue.
    last_epilogue: 0.9933,
    /// Double buffer: unhidden cycles per k-tile.
    unhidden: 8.03,
    /// Split-K: cycles of an exchange through the cluster.
    split_k: 1331.0,
    /// Split-K: cycles of an exchange for each further CTA.
    split_k_part: 7.771,
    /// Split-K: cycles of an exchange for each accumulator of a further CTA.
    split_k_value: 0.06322,
    /// Split-K: extra L2 reads, as the CTAs of a cluster share none.
    split_k_reads: 0.8298,
    /// Stream-K: cycles of an exchange through memory.
    stream_k: 10890.0,
    /// Stream-K: cycles of an exchange per accumulator.
    stream_k_value: 0.005619,
    /// Stream-K: cycles of an exchange per accumulator, for each CTA beyond two that shares a tile.
    stream_k_part_value: 0.2214,
    /// Stream-K: cycles of waiting per k-tile of a CTA.
    stream_k_k_tile: 99.11,
    /// Stream-K: extra L2 reads, as CTAs share fewer lines.
    stream_k_reads: 0.775,
    /// Stream-K: the bytes of the operands from which this holds in full.
    stream_k_reads_from: 1.005e8,
    /// Gather: cycles until the loads of a group arrive.
    gather_group: 1770.0,
    /// Gather: cycles per load of a warp.
    gather_load: 9.053,
    /// Bytes per second that a copy of an operand reads and writes.
    copy: 4.132e12,
    /// Launch overhead of a copy in seconds.
    copy_launch: 2.628e-6,
    /// Time of two consecutive kernels relative to the sum of both. Not fitted.
    two_kernels: 1.026,
    /// The slowdown at the power limit.
    power: 0.174,
    /// At the power limit, every moved byte costs time: the slowdown per byte of a stage and multiply-
    /// add.
    power_of_moves: 1.094,
    /// The operations of a GEMM that reaches the power limit.
    power_flops: 8.63e11,
}
