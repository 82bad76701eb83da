//! Stamps on a GPU: what one costs, and the demonstration's phases.

use std::io::Write as _;

use assay_measure::stamps::{DEMO_PHASES, demo, overhead, sm_clock_mhz, statistics, warnings};
use assay_record::{STAMPS_SCHEMA, StampRecord};

#[test]
fn a_stamp_costs_tens_of_cycles_and_phases_are_what_they_must_be_gpu() {
    let mut device = match assay_device::open("cuda") {
        Ok(device) => device,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED a_stamp_costs_gpu: {error}");
            return;
        }
    };
    let cost = overhead(&mut *device).expect("stamps").expect("a cost");
    let _ = writeln!(std::io::stderr(), "STAMP {cost:?}");
    assert!((4.0..400.0).contains(&cost.cycles_median), "{cost:?}");
    let phases = DEMO_PHASES.map(str::to_owned).to_vec();
    let mut works = Vec::new();
    for rounds in [64, 1024] {
        // Once more than is read: code and data are then where they will be.
        demo(&mut *device, 16, rounds).expect("stamps");
        let demo = demo(&mut *device, 16, rounds).expect("stamps");
        let found = statistics(&phases, &demo.lanes);
        let _ = writeln!(std::io::stderr(), "DEMO rounds {rounds} {found:#?}");
        assert_eq!(warnings(&demo.lanes, demo.dropped), Vec::<String>::new());
        works.push(found[2].cycles_median);
        let facts = device.facts();
        let record = StampRecord {
            schema: STAMPS_SCHEMA,
            seed: None,
            equal_output_bytes: None,
            kernel: "staged_sum".to_owned(),
            device: facts.name.clone(),
            driver: facts.driver.clone(),
            date: "2026-11-30T12:00:00Z".to_owned(),
            command: format!("staged_sum with 16 blocks of 128 threads, {rounds} rounds"),
            statistics: found,
            phases: phases.clone(),
            dropped: demo.dropped,
            sm_clock_mhz: sm_clock_mhz(&demo.lanes),
            overhead: Some(cost),
            warnings: Vec::new(),
            lanes: demo.lanes,
        };
        if let Some(folder) = std::env::var_os("ASSAY_STAMPS_OUT") {
            let path = std::path::Path::new(&folder).join(format!("stamps-{rounds}.json"));
            std::fs::write(path, record.to_json().expect("JSON")).expect("written");
        }
    }
    // 16 times the rounds of dependent steps take about 16 times the cycles.
    let ratio = works[1] / works[0];
    assert!((8.0..20.0).contains(&ratio), "{works:?}");
}
