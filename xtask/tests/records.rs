//! The records of gate 5 are of today's sources, and are what the pinned compiler makes of them.

mod common;

#[test]
fn the_records_of_one_release_are_what_its_compiler_makes_and_the_rest_are_of_the_same_sources() {
    common::holds(&["records", "--check"], "records of nvcc 13.0.88 are what it makes");
}
