//! What the compiler's own tools say of an image, to compare with what is read in it.

use std::collections::BTreeMap;

use assay_image::CudaKernel;

/// Bytes of shared memory that the system keeps in every block from `sm_90` up; `cuobjdump` counts
/// them as the kernel's, `ptxas` does not.
const RESERVED_SHARED: u32 = 1024;

/// What a tool says of one kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Listed {
    pub(super) registers: u32,
    pub(super) shared: u32,
    pub(super) stack: u32,
    /// Only `ptxas` lists them.
    pub(super) barriers: Option<u32>,
}

/// By chip and symbol.
pub(super) type Listing = BTreeMap<(String, String), Listed>;

/// Reads what `ptxas -v` prints, for one or more chips.
pub(super) fn ptxas(text: &str) -> Listing {
    let mut listing = Listing::new();
    let mut at: Option<(String, String)> = None;
    let mut stack = 0;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let mut quoted = rest.split('\'');
            let (symbol, chip) = (quoted.next(), quoted.nth(1));
            at = chip.zip(symbol).map(|(chip, symbol)| (chip.to_owned(), symbol.to_owned()));
        } else if line.contains("bytes stack frame") {
            stack = first_number(line).unwrap_or(0);
        } else if let Some((_, used)) = line.split_once(": Used ") {
            let Some(key) = at.take() else { continue };
            let count = |unit: &str| {
                let part = used.split(',').find(|part| part.trim_end().ends_with(unit));
                part.and_then(first_number)
            };
            let listed = Listed {
                registers: count("registers").unwrap_or(0),
                shared: count("bytes smem").unwrap_or(0),
                stack,
                barriers: Some(count("barriers").unwrap_or(0)),
            };
            listing.insert(key, listed);
        }
    }
    listing
}

/// Reads what `cuobjdump -res-usage` prints of a fatbin.
pub(super) fn cuobjdump(text: &str) -> Listing {
    let mut listing = Listing::new();
    let (mut chip, mut symbol) = ("", "");
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("arch = ") {
            chip = name.trim();
        } else if let Some(name) = line.trim_start().strip_prefix("Function ") {
            symbol = name.trim_end().trim_end_matches(':');
        } else if line.trim_start().starts_with("REG:") {
            let count = |name: &str| {
                let mut words = line.split_whitespace();
                words.find_map(|word| word.strip_prefix(name)?.parse().ok()).unwrap_or(0)
            };
            let shared: u32 = count("SHARED:");
            let reserved = if keeps_shared(chip) { RESERVED_SHARED } else { 0 };
            let listed = Listed {
                registers: count("REG:"),
                shared: shared.saturating_sub(reserved),
                stack: count("STACK:"),
                barriers: None,
            };
            listing.insert((chip.to_owned(), symbol.to_owned()), listed);
        }
    }
    listing
}

fn keeps_shared(chip: &str) -> bool {
    first_number(chip).is_some_and(|number| number >= 90)
}

/// The first run of digits.
fn first_number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Where a tool says something else of a kernel than its image does, or has another set of them.
pub(super) fn disagreements(
    tool: &str,
    listing: &Listing,
    kernels: &[(String, CudaKernel)],
) -> Vec<String> {
    let mut found = Vec::new();
    for (chip, kernel) in kernels {
        let name = &kernel.name;
        let Some(listed) = listing.get(&(chip.clone(), name.clone())) else {
            found.push(format!("{name} on {chip}: {tool} does not list it"));
            continue;
        };
        let mut compare = |what: &str, read: u32, said: u32| {
            if read != said {
                found.push(format!("{name} on {chip}: {what} {read} in the image, {tool}: {said}"));
            }
        };
        compare("registers", kernel.registers, listed.registers);
        compare("static shared bytes", kernel.static_shared_bytes, listed.shared);
        compare("stack bytes", kernel.stack_bytes, listed.stack);
        if let Some(barriers) = listed.barriers {
            compare("barriers", kernel.barriers, barriers);
        }
    }
    if listing.len() != kernels.len() {
        let (listed, read) = (listing.len(), kernels.len());
        found.push(format!("{tool} lists {listed} kernels, and {read} were read in the image"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTXAS: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'row_sum_f32' for 'sm_80'
ptxas info    : Function properties for row_sum_f32
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 26 registers, used 1 barriers, 32 bytes smem, 376 bytes cmem[0]
ptxas info    : Compile time = 66.667 ms
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'row_sum_f32' for 'sm_120'
ptxas info    : Function properties for row_sum_f32
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 28 registers, used 0 barriers
";

    const CUOBJDUMP: &str = "
Fatbin elf code:
================
arch = sm_80
code version = [1,8]

Resource usage:
 Common:
  GLOBAL:0
 Function row_sum_f32:
  REG:26 STACK:16 SHARED:32 LOCAL:0 CONSTANT[0]:376 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin elf code:
================
arch = sm_120

Resource usage:
 Function row_sum_f32:
  REG:28 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:920 TEXTURE:0 SURFACE:0 SAMPLER:0
";

    fn kernels() -> Vec<(String, CudaKernel)> {
        let kernel = |registers, static_shared_bytes, stack_bytes, barriers| CudaKernel {
            name: "row_sum_f32".to_owned(),
            registers,
            static_shared_bytes,
            stack_bytes,
            barriers,
            ..CudaKernel::default()
        };
        vec![
            ("sm_80".to_owned(), kernel(26, 32, 16, 1)),
            ("sm_120".to_owned(), kernel(28, 0, 0, 0)),
        ]
    }

    #[test]
    fn facts_that_both_tools_confirm_are_no_problem() {
        assert_eq!(disagreements("ptxas -v", &ptxas(PTXAS), &kernels()), [""; 0]);
        assert_eq!(disagreements("cuobjdump", &cuobjdump(CUOBJDUMP), &kernels()), [""; 0]);
    }

    #[test]
    fn one_register_of_difference_is_a_problem_with_both_numbers() {
        let mut kernels = kernels();
        kernels[1].1.registers += 1;
        for (tool, listing) in [("ptxas -v", ptxas(PTXAS)), ("cuobjdump", cuobjdump(CUOBJDUMP))] {
            assert_eq!(
                disagreements(tool, &listing, &kernels),
                [format!("row_sum_f32 on sm_120: registers 29 in the image, {tool}: 28")]
            );
        }
    }

    #[test]
    fn every_other_fact_and_a_missing_kernel_are_compared_too() {
        let listing = ptxas(PTXAS);
        let changes: [fn(&mut CudaKernel); 3] = [
            |kernel| kernel.static_shared_bytes += 1024,
            |kernel| kernel.stack_bytes += 8,
            |kernel| kernel.barriers += 1,
        ];
        for change in changes {
            let mut kernels = kernels();
            change(&mut kernels[0].1);
            assert_eq!(disagreements("ptxas -v", &listing, &kernels).len(), 1);
        }
        let fewer = disagreements("ptxas -v", &listing, &kernels()[..1]);
        assert_eq!(fewer, ["ptxas -v lists 2 kernels, and 1 were read in the image"]);
        let mut renamed = kernels();
        renamed[0].1.name.push('x');
        assert!(disagreements("ptxas -v", &listing, &renamed)[0].contains("does not list it"));
    }

    #[test]
    fn shared_memory_that_the_system_keeps_is_not_the_kernels() {
        let text = CUOBJDUMP.replace("STACK:0 SHARED:0", "STACK:0 SHARED:1088");
        let listing = cuobjdump(&text);
        assert_eq!(listing[&("sm_120".to_owned(), "row_sum_f32".to_owned())].shared, 64);
        assert_eq!(listing[&("sm_80".to_owned(), "row_sum_f32".to_owned())].shared, 32);
    }
}
