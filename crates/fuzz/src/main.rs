//! wip
use warpline_fuzz::*;
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let t = std::time::Instant::now();
    let r = campaign::run(args[0], args[1], Effort::NORMAL, &|_| true);
    println!("{} kernels {} changed {} unbuilt {} proved {} refuted {} undecided in {:?}", r.kernels, r.changed, r.unbuilt, r.proved, r.refuted, r.undecided, t.elapsed());
    for ((s, c), (n, seed)) in r.by_cause() { println!("{:28} {n:5} {seed:8} {c}", s.name()); }
    if args.len() > 2 { for f in &r.findings { println!("{} {} {:?} {:?}", f.seed, f.sort.name(), f.outcomes, f.subject); println!("{}", f.subject.kernel().unwrap()); } }
}
