//! Row families: the problems that share a tuned config.

use warpline_kernels::softmax::Softmax;
use warpline_kernels::{AnyFamily, DeviceKind, Request};
use warpline_testkit::kernel::TARGET;

#[test]
fn row_counts_share_a_bucket_up_to_a_power_of_two_and_row_lengths_never_do() {
    let work = |rows: u64, cols: u64| {
        let request = Request::default().with("rows", rows).with("cols", cols);
        let work = Softmax::NEW.workload(&request, DeviceKind::Gpu, None, &TARGET);
        let tuning = work.unwrap().tuning().unwrap();
        (tuning.class, tuning.bucket.extents)
    };
    assert_eq!(work(16384, 4096), work(9000, 4096));
    assert_ne!(work(16384, 4096), work(16385, 4096));
    assert_ne!(work(16384, 4096), work(16384, 4104));
    assert_ne!(
        work(16384, 4096).0,
        work(16384, 4097).0,
        "alignment is part of the class"
    );
}
