//! Files of chips: what is built in, what a user may add, and how errors name the place.

use assay_limits::{Chip, Chips, Vendor};

#[test]
fn the_chips_of_three_vendors_are_built_in_in_the_order_in_which_people_count_them() {
    let chips = Chips::built_in();
    let names: Vec<&str> = chips.all().iter().map(Chip::name).collect();
    let cuda =
        ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"];
    let hip = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"];
    let metal = ["M1", "M2", "M3", "M4", "M5"];
    assert_eq!(names, [&cuda[..], &hip[..], &metal[..]].concat());
    assert_eq!(chips.chip("gfx1100").map(Chip::vendor), Some(Vendor::Hip));
    assert_eq!(chips.chip("sm_75"), None);
}
