//! Every kernel of products on the emulator at its smallest size.

use assay_device::{Device, Image, open};

use super::matrix::{Density, Element};
use super::products::{Bench, Products, Shape};

fn ptx(name: &str) -> Image {
    let text = match name {
        "mma" => include_str!("../../../../../kernels/measure/mma.ptx"),
        "mma_f64" => include_str!("../../../../../kernels/measure/mma_f64.sm_90.ptx"),
        "mma_fp8" => include_str!("../../../../../kernels/measure/mma_fp8.sm_89.ptx"),
        "wgmma" => include_str!("../../../../../kernels/measure/wgmma.sm_90a.ptx"),
        _ => include_str!("../../../../../kernels/measure/wgmma_sparse.sm_90a.ptx"),
    };
    Image::ptx(name, text)
}

fn check(device: &mut dyn Device, products: Products, module: &str) {
    let module = device.load(&ptx(module)).unwrap();
    let bench = Bench::new(device, module, products, 1, 7).unwrap();
    bench.run(device, 2, 2).unwrap();
    bench.verify(device, 2, 2).unwrap();
    assert!(bench.verify(device, 3, 2).is_err(), "a dropped round");
    assert!(bench.verify(device, 2, 3).is_err(), "a dropped pair");
    bench.free(device).unwrap();
}

#[test]
fn every_accumulator_of_mma_is_right_on_the_emulator() {
    let mut device = open("emulator:sm_90").unwrap();
    for element in Element::NARROW {
        for density in [Density::Dense, Density::Sparse] {
            let (module, (rows, columns)) = match (element, density) {
                (Element::E4m3, Density::Dense) => ("mma_fp8", (2, 4)),
                (Element::E4m3, Density::Sparse) => ("mma_fp8", (2, 2)),
                _ => ("mma", (4, 4)),
            };
            let shape = Shape::Warp { rows, columns };
            check(&mut *device, Products { element, density, shape, warps: 2 }, module);
        }
    }
}

#[test]
fn every_accumulator_of_mma_in_double_is_right_on_the_emulator() {
    let mut device = open("emulator:sm_90").unwrap();
    let shape = Shape::Warp { rows: 1, columns: 2 };
    let (element, density) = (Element::F64, Density::Dense);
    check(&mut *device, Products { element, density, shape, warps: 2 }, "mma_f64");
}

#[test]
fn every_accumulator_of_wgmma_is_right_on_the_emulator() {
    let mut device = open("emulator:sm_90").unwrap();
    for element in Element::NARROW {
        for density in [Density::Dense, Density::Sparse] {
            for a_in_registers in [false, true] {
                let shape = Shape::Warpgroup { a_in_registers };
                let module = if density == Density::Dense { "wgmma" } else { "wgmma_sparse" };
                check(&mut *device, Products { element, density, shape, warps: 4 }, module);
            }
        }
    }
}
