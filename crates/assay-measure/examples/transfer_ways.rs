//! Every way to copy between a device and memory of the host that is not pinned, a row each.
//!
//!     cargo run -p assay-measure --example transfer_ways -- cuda [MiB]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its rows are for people")]

use assay_measure::probe::ends::Way;
use assay_measure::probe::host::{random_words, try_ways};

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cuda".into());
    let mib: u64 = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(256);
    let mut device = match assay_device::open(&name) {
        Ok(device) => device,
        Err(error) => return eprintln!("error: {error}"),
    };
    let words = random_words(mib << 20, 1);
    for to_device in [true, false] {
        println!("{} of {mib} MiB", if to_device { "to the device" } else { "to the host" });
        match try_ways(&mut *device, &Way::pageable(to_device, false), &words, 5) {
            Ok(tried) => {
                for (way, rate) in tried {
                    println!("{:8.2} GB/s  {way}", rate / 1e9);
                }
            }
            Err(error) => eprintln!("error: {error}"),
        }
    }
}
