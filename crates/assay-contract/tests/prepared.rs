//! A kernel that is made ready once and launched again and again.

use std::path::Path;

use assay_contract::{Kernel, Prepared, load_manifest};
use assay_device::{Device, StreamId};

fn suite(manifest: &str) -> Vec<assay_contract::ManifestKernel> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda").join(manifest);
    load_manifest(&root).kernels
}

#[test]
fn every_kernel_of_a_manifest_is_launched_again_and_again_and_given_back() {
    let mut device = assay_device::open("emulator:sm_90").expect("the emulator opens");
    for kernel in suite("softmax.toml").iter().chain(&suite("row_sum.toml")) {
        let served = kernel.spec().served();
        let dims = served.iter().min_by_key(|dims| dims.values().product::<i64>());
        let dims = dims.expect("the suite serves some shape");
        let prepared = Prepared::new(device.as_mut(), kernel, dims, 1).expect("it is ready");
        assert!(prepared.bytes() > 0);
        for _ in 0..3 {
            prepared.launch(device.as_mut(), StreamId::DEFAULT).expect("it runs");
        }
        device.synchronize().expect("it ran");
        prepared.free(device.as_mut()).expect("all is given back");
    }
}
