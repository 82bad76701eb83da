//! What PTX text promises of a kernel's blocks, which holds before anything is compiled from it.

use assay_image::CudaKernel;

/// The bounds that a kernel's `.maxntid` and `.reqntid` state, as facts with nothing else known.
pub(crate) fn declared(ptx: &str, symbol: &str) -> CudaKernel {
    let mut kernel = CudaKernel { name: symbol.to_owned(), ..CudaKernel::default() };
    if let Some(head) = head_of(ptx, symbol) {
        kernel.max_threads = triple(head, ".maxntid");
        kernel.required_threads = triple(head, ".reqntid");
    }
    kernel
}

/// The text of an entry between its name and its body.
fn head_of<'t>(ptx: &'t str, symbol: &str) -> Option<&'t str> {
    ptx.split(".entry").skip(1).find_map(|text| {
        let rest = text.trim_start().strip_prefix(symbol)?;
        let ends = rest.starts_with(|c: char| c == '(' || c.is_whitespace());
        ends.then(|| rest.split('{').next().unwrap_or_default())
    })
}

/// The numbers after a directive; those left out are 1.
fn triple(head: &str, directive: &str) -> Option<[u32; 3]> {
    let (_, rest) = head.split_once(directive)?;
    let line = rest.lines().next().unwrap_or_default();
    let mut all = [1; 3];
    for (axis, number) in all.iter_mut().zip(line.split(',')) {
        *axis = number.trim().parse().ok()?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::declared;

    const PTX: &str = "\
.visible .entry row_sum(
    .param .u64 a
)
.maxntid 256, 1, 1
{
    ret;
}
.visible .entry row_sum_exact(.param .u64 a) .reqntid 32, 4
{ ret; }
.entry free() { ret; }
";

    #[test]
    fn bounds_are_read_from_the_entry_of_that_name_alone() {
        assert_eq!(declared(PTX, "row_sum").max_threads, Some([256, 1, 1]));
        let exact = declared(PTX, "row_sum_exact");
        assert_eq!((exact.max_threads, exact.required_threads), (None, Some([32, 4, 1])));
        let free = declared(PTX, "free");
        assert_eq!((free.max_threads, free.required_threads), (None, None));
        assert_eq!(declared(PTX, "row").max_threads, None, "no entry has this name");
        assert_eq!(declared(".entry k .maxntid x, 1 {", "k").max_threads, None);
    }
}
