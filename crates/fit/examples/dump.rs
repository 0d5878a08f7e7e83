use warpline_fit::{samples, table::Table};
fn main() {
    let mut i = 0;
    for path in std::env::args().skip(1) {
        for s in samples::read(
            &Table::read(path.as_ref()).unwrap(),
            &warpline_ir::Target::SM_90A,
        )
        .unwrap()
        {
            for t in &s.timings {
                let p = &s.problem;
                println!(
                    "{i}|{}|{}x{}x{}|{}|{:?}|{:?}",
                    s.kind(),
                    p.m,
                    p.n,
                    p.k,
                    t.seconds * 1e6,
                    t.features,
                    t.config
                );
            }
            i += 1;
        }
    }
}
