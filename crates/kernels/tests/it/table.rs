//! Plans of every family's test table. The crate `warpline` checks, prints, assembles and runs them
//! (`tests/it/shipped.rs`).

use std::collections::HashMap;
use warpline_kernels::registry;
use warpline_testkit::kernel::TARGET;

#[test]
fn one_program_serves_every_extent_of_a_class_and_config() {
    for family in registry() {
        let mut modules: HashMap<String, String> = HashMap::new();
        for work in family.cases(&TARGET).into_iter().flatten() {
            // The grid is not compiled in.
            let class = work
                .tuning()
                .expect("a workload of a family has tuning data")
                .class;
            let mut config = work.config();
            if let Some(c) = config.as_object_mut() {
                c.remove("ctas");
            }
            let key = format!("{class} {config}");
            for (i, step) in work
                .plan(&TARGET)
                .expect("the config is legal")
                .steps
                .iter()
                .enumerate()
            {
                // A copy has a class of its own: the load that fits its tensor.
                if step.kernel.name == "gemm_pack" {
                    continue;
                }
                let (hash, key) = (step.kernel.text_hash(), format!("step {i} of {key}"));
                let known = modules.entry(key.clone()).or_insert_with(|| hash.clone());
                assert_eq!(*known, hash, "{key}");
            }
        }
    }
}
