//! Every target has seeds, reads them without a finding, and accepts some of them.

use super::*;
use std::path::Path;

#[test]
fn every_target_accepts_a_seed() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for target in TARGETS {
        let mut accepted = 0;
        for file in std::fs::read_dir(seeds.join(target.name)).unwrap() {
            let input = std::fs::read(file.unwrap().path()).unwrap();
            accepted += usize::from((target.run)(&input));
        }
        assert!(accepted > 0, "{}: no seed is accepted", target.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_inputs() {
    let inputs = || {
        let mut mutator =
            mutate::Mutator::new(7, vec![b"{\"a\":[1,2]}".to_vec(), b"null".to_vec()]);
        let made: Vec<Vec<u8>> = (0..100).map(|_| mutator.input()).collect();
        made
    };
    assert_eq!(inputs(), inputs());
    assert!(inputs().iter().any(|input| input != b"null"));
}
