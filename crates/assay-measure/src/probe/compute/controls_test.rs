//! Kernels with a planted fault: each probe must catch its own.

use assay_device::{Device, Image, ModuleId, open};

use super::atomics::{Atomic, Field};
use super::fma::{Orbits, PIPES};
use super::matrix::{Density, Element};
use super::products::{Bench, Products, Shape};

/// What is taken out of a kernel.
#[derive(Clone, Copy)]
enum Fault {
    /// The last instruction of the kernel that contains the text.
    Skipped(&'static str),
    /// The first conditional branch after it: its loop runs once.
    LoopDropped(&'static str),
}

/// The module's text without one line of one kernel.
fn spoilt(text: &str, symbol: &str, fault: Fault) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let entry = format!(".entry {symbol}(");
    let start = lines.iter().position(|line| line.contains(&entry)).expect("the kernel is there");
    let next = lines[start + 1..].iter().position(|line| line.contains(".entry "));
    let end = next.map_or(lines.len(), |next| start + 1 + next);
    let (Fault::Skipped(instruction) | Fault::LoopDropped(instruction)) = fault;
    let last = (start..end).rfind(|at| lines[*at].contains(instruction)).expect("it has one");
    let at = match fault {
        Fault::Skipped(_) => last,
        Fault::LoopDropped(_) => {
            let branch = |at: &usize| lines[*at].trim_start().starts_with('@');
            (last..end).find(branch).expect("the loop ends in a branch")
        }
    };
    // A brace that an instruction shares its line with stays.
    lines[at] = if lines[at].contains('{') && !lines[at].contains('}') { "{" } else { "" };
    lines.join("\n") + "\n"
}

fn load(text: &str) -> (Box<dyn Device>, ModuleId) {
    let mut device = open("emulator:sm_90").unwrap();
    let module = device.load(&Image::ptx("spoilt.ptx", text)).unwrap();
    (device, module)
}

#[test]
fn a_warp_that_skips_a_fragment_or_drops_its_loop_is_caught() {
    let text = include_str!("../../../../../kernels/measure/mma.ptx");
    let shape = Shape::Warp { rows: 4, columns: 4 };
    for (element, density) in [
        (Element::Bf16, Density::Dense),
        (Element::S8, Density::Dense),
        (Element::F16, Density::Sparse),
    ] {
        let products = Products { element, density, shape, warps: 1 };
        let instruction = if density == Density::Dense { "mma.sync" } else { "mma.sp" };
        for fault in [Fault::Skipped(instruction), Fault::LoopDropped(instruction)] {
            caught(text, products, fault);
        }
    }
}

#[test]
fn a_warpgroup_that_skips_a_product_or_drops_its_loop_is_caught() {
    let text = include_str!("../../../../../kernels/measure/wgmma.sm_90a.ptx");
    for (element, a_in_registers) in [(Element::E4m3, false), (Element::Bf16, true)] {
        let shape = Shape::Warpgroup { a_in_registers };
        let products = Products { element, density: Density::Dense, shape, warps: 4 };
        for fault in [Fault::Skipped("wgmma.mma"), Fault::LoopDropped("wgmma.mma")] {
            caught(text, products, fault);
        }
    }
}

fn caught(text: &str, products: Products, fault: Fault) {
    let (mut device, module) = load(&spoilt(text, &products.symbol(), fault));
    let bench = Bench::new(&mut *device, module, products, 1, 7).unwrap();
    bench.run(&mut *device, 2, 3).unwrap();
    let found = bench.verify(&mut *device, 2, 3).unwrap_err();
    assert!(found.to_string().contains("not every product was made"), "{found}");
}

#[test]
fn an_orbit_that_skips_a_step_or_drops_its_loop_is_caught() {
    let text = include_str!("../../../../../kernels/measure/fma.ptx");
    for pipe in PIPES {
        for fault in [Fault::Skipped("fma.rn"), Fault::LoopDropped("fma.rn")] {
            let (mut device, module) = load(&spoilt(text, &pipe.symbol(), fault));
            let orbits = Orbits::new(&mut *device, module, pipe, (1, 32), 7).unwrap();
            orbits.run(&mut *device, 2).unwrap();
            orbits.verify(&mut *device, 2, usize::MAX).unwrap_err();
        }
    }
}

#[test]
fn a_thread_that_skips_an_addition_is_caught() {
    let text = include_str!("../../../../../kernels/measure/atomics.ptx");
    for (atomic, instruction) in [(Atomic::AddF32, "red.relaxed"), (Atomic::AddU32, "red.relaxed")]
    {
        let fault = Fault::Skipped(instruction);
        let (mut device, module) = load(&spoilt(text, atomic.symbol(), fault));
        let field = Field::new(&mut *device, module, 1, 64).unwrap();
        field.run(&mut *device, atomic, 3, 7).unwrap();
        field.verify(&mut *device, atomic, 3, 7).unwrap_err();
    }
}
