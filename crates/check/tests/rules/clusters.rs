use crate::kit::Kit;

#[test]
fn a_cluster_above_the_largest_size_is_refused() {
    let mut k = Kit::one();
    k.0.cluster = [4, 4, 2];
    let text = k.refused("R8.size", 1);
    assert!(text.contains("1 to 16 CTAs; 4×4×2 has 32"), "{text}");
}

#[test]
fn an_empty_cluster_is_refused() {
    let mut k = Kit::one();
    k.0.cluster = [2, 0, 1];
    k.refused("R8.size", 1);
}

#[test]
fn a_cluster_of_sixteen_passes() {
    let mut k = Kit::one();
    k.0.cluster = [4, 2, 2];
    k.passes();
}
