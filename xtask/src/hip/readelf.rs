//! What `llvm-readelf --notes` says of a code object, and whether it says the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use assay_image::{HipImage, HipKernel};

/// Compares every fact of every kernel; an error names the first that differs.
pub(super) fn check(readelf: &Path, file: &Path, image: &HipImage) -> Result<(), String> {
    let output = Command::new(readelf)
        .arg("--notes")
        .arg(file)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", readelf.display()))?;
    compare(&String::from_utf8_lossy(&output.stdout), image)
}

/// One kernel of the printed note: key and value as printed.
type Printed = BTreeMap<String, String>;

fn compare(text: &str, image: &HipImage) -> Result<(), String> {
    let target = format!("amdgcn-amd-amdhsa--{}", image.architecture);
    let printed = text.lines().find_map(|line| line.strip_prefix("amdhsa.target:"));
    if printed.map(str::trim) != Some(&target) {
        return Err(format!("llvm-readelf says target {printed:?}, not {target}"));
    }
    let kernels = kernels(text);
    if kernels.len() != image.kernels.len() {
        let (theirs, ours) = (kernels.len(), image.kernels.len());
        return Err(format!("llvm-readelf lists {theirs} kernels, not {ours}"));
    }
    image.kernels.iter().try_for_each(|kernel| {
        let name = &kernel.name;
        let Some(printed) = kernels.get(name) else {
            return Err(format!("llvm-readelf does not list {name}"));
        };
        let differs = facts(kernel).into_iter().find_map(|(key, ours)| {
            // What is not printed is none.
            let theirs = printed.get(key).map_or("0", String::as_str);
            (theirs != ours.to_string()).then(|| format!("{key} {theirs}, not {ours}"))
        });
        differs.map_or(Ok(()), |text| Err(format!("llvm-readelf says of {name}: {text}")))
    })
}

/// Each fact under its key.
fn facts(kernel: &HipKernel) -> [(&'static str, u32); 12] {
    [
        (".vgpr_count", kernel.vgprs),
        (".sgpr_count", kernel.sgprs),
        (".agpr_count", kernel.agprs),
        (".group_segment_fixed_size", kernel.static_lds_bytes),
        (".private_segment_fixed_size", kernel.scratch_bytes),
        (".max_flat_workgroup_size", kernel.max_workgroup),
        (".wavefront_size", kernel.wave_size),
        (".vgpr_spill_count", kernel.vgpr_spills),
        (".sgpr_spill_count", kernel.sgpr_spills),
        (".workgroup_processor_mode", kernel.workgroup_processor_mode.into()),
        (".kernarg_segment_size", kernel.parameter_bytes),
        ("arguments", kernel.parameters.len().try_into().unwrap_or(u32::MAX)),
    ]
}

/// The kernels of the YAML that is printed, by name. A kernel starts with `  - `; its keys are
/// indented by four, those of its arguments by more.
fn kernels(text: &str) -> BTreeMap<String, Printed> {
    let mut found = Vec::new();
    let lines = text.lines().skip_while(|line| *line != "amdhsa.kernels:").skip(1);
    for line in lines.take_while(|line| line.starts_with("  ")) {
        if line.starts_with("  - ") {
            found.push(Printed::new());
        }
        let Some(kernel) = found.last_mut() else { continue };
        let explicit = line.trim().strip_prefix(".value_kind:");
        if explicit.is_some_and(|kind| !kind.trim().starts_with("hidden_")) {
            add_one(kernel.entry("arguments".to_owned()).or_default());
        }
        let Some(key_and_value) = line.get(4..).filter(|rest| rest.starts_with('.')) else {
            continue;
        };
        if let Some((key, value)) = key_and_value.split_once(':') {
            kernel.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    let named = |kernel: Printed| {
        let name = kernel.get(".name").map_or("", |name| name.trim_matches('\''));
        (name.to_owned(), kernel)
    };
    found.into_iter().map(named).collect()
}

fn add_one(count: &mut String) {
    let before: u32 = count.parse().unwrap_or(0);
    *count = (before + 1).to_string();
}

#[cfg(test)]
mod tests {
    use super::compare;
    use assay_image::{HipImage, HipKernel, Parameter};

    const TEXT: &str = "\
    AMDGPU Metadata:
        ---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
      - .offset:         16
        .size:           4
        .value_kind:     hidden_block_count_x
    .group_segment_fixed_size: 64
    .kernarg_segment_size: 24
    .max_flat_workgroup_size: 256
    .name:           k
    .private_segment_fixed_size: 0
    .sgpr_count:     33
    .sgpr_spill_count: 0
    .vgpr_count:     19
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
";

    fn image() -> HipImage {
        let kernel = HipKernel {
            name: "k".to_owned(),
            vgprs: 19,
            sgprs: 33,
            static_lds_bytes: 64,
            max_workgroup: 256,
            wave_size: 64,
            parameter_bytes: 24,
            parameters: vec![Parameter { offset: 0, size: 8 }, Parameter { offset: 8, size: 4 }],
            ..HipKernel::default()
        };
        let kernels = vec![kernel];
        HipImage { architecture: "gfx942".to_owned(), compiler: None, kernels }
    }

    #[test]
    fn a_note_that_says_the_same_is_agreed_on() {
        assert_eq!(compare(TEXT, &image()), Ok(()));
    }

    #[test]
    fn any_other_number_target_or_kernel_is_a_difference() {
        let change = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            compare(&TEXT.replace(from, to), &image()).expect_err("it differs")
        };
        let error = change(".vgpr_count:     19", ".vgpr_count:     20");
        assert_eq!(error, "llvm-readelf says of k: .vgpr_count 20, not 19");
        let error = change("by_value", "hidden_none");
        assert_eq!(error, "llvm-readelf says of k: arguments 1, not 2");
        assert!(change("--gfx942", "--gfx90a").contains("gfx90a"));
        assert!(change(".name:           k", ".name:           l").contains("does not list k"));
        assert!(change("amdhsa.kernels", "amdhsa.other").contains("0 kernels"));
    }
}
