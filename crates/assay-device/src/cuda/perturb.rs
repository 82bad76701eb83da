//! Unrelated work beside a launch under test, so that its blocks start, wait and finish in
//! another order than on an idle device.

use std::sync::Arc;

use super::context::{Context, Stream};
use super::memory::Memory;
use super::module::{Kernel, Module};
use crate::device::Image;
use crate::error::DeviceError;
use crate::handle::ModuleId;
use crate::launch::Launch;

/// Bytes that the memory traffic walks: more than most of a GPU's second-level cache.
const TRAFFIC_BYTES: u64 = 64 << 20;

/// Two kernels that end by themselves. `occupy` computes for a number of rounds and stores only
/// one value among all, so that no compiler drops the rounds; `traffic` adds 1 to every word of
/// its memory, round after round.
const TEXT: &str = "\
.version 7.0
.target sm_75
.address_size 64

.visible .entry occupy(.param .u64 memory, .param .u32 words, .param .u32 rounds)
{
    .reg .pred %stop;
    .reg .b32 %count, %value;
    .reg .b64 %at;
    ld.param.u32 %count, [rounds];
    mov.u32 %value, %tid.x;
again:
    mad.lo.u32 %value, %value, 1664525, 1013904223;
    mad.lo.u32 %value, %value, 22695477, 1;
    sub.u32 %count, %count, 1;
    setp.ne.u32 %stop, %count, 0;
    @%stop bra again;
    setp.ne.u32 %stop, %value, 0x9E3779B9;
    @%stop bra done;
    ld.param.u64 %at, [memory];
    cvta.to.global.u64 %at, %at;
    st.global.u32 [%at], %value;
done:
    ret;
}

.visible .entry traffic(.param .u64 memory, .param .u32 words, .param .u32 rounds)
{
    .reg .pred %go;
    .reg .b32 %count, %value, %index, %first, %step, %total, %x, %y;
    .reg .b64 %base, %at;
    ld.param.u64 %base, [memory];
    cvta.to.global.u64 %base, %base;
    ld.param.u32 %total, [words];
    ld.param.u32 %count, [rounds];
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ntid.x;
    mov.u32 %first, %tid.x;
    mad.lo.u32 %first, %x, %y, %first;
    mov.u32 %x, %nctaid.x;
    mul.lo.u32 %step, %x, %y;
round:
    mov.u32 %index, %first;
next:
    setp.ge.u32 %go, %index, %total;
    @%go bra finished;
    mad.wide.u32 %at, %index, 4, %base;
    ld.global.u32 %value, [%at];
    add.u32 %value, %value, 1;
    st.global.u32 [%at], %value;
    add.u32 %index, %index, %step;
    bra next;
finished:
    sub.u32 %count, %count, 1;
    setp.ne.u32 %go, %count, 0;
    @%go bra round;
    ret;
}
";

/// What a kind of perturbation runs: blocks as a share of the multiprocessors, and rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Load {
    symbol: &'static str,
    blocks: u32,
    rounds: u32,
}

/// Kinds go round: every fourth is idle, and each round of four has other sizes.
fn loads(kind: u32, multiprocessors: u32) -> Vec<Load> {
    let (what, size) = (kind % 4, kind / 4 % 3);
    let blocks = (multiprocessors * (size + 1) / 2).max(1);
    let occupy = Load { symbol: "occupy", blocks, rounds: 50_000 << size };
    let traffic = Load { symbol: "traffic", blocks, rounds: 2 << size };
    match what {
        0 => Vec::new(),
        1 => vec![occupy],
        2 => vec![traffic],
        _ => vec![occupy, traffic],
    }
}

/// The two kernels, loaded, each with a stream of its own.
pub(super) struct Perturbation {
    memory: Memory,
    kernels: [(&'static str, Kernel, Stream); 2],
}

impl Perturbation {
    pub(super) fn new(context: &Arc<Context>) -> Result<Perturbation, DeviceError> {
        let module = Arc::new(Module::load(context, &Image::ptx("perturbation.ptx", TEXT))?);
        let kernel =
            |symbol| Ok((symbol, Kernel::find(&module, symbol)?, Stream::create(context)?));
        let kernels = [kernel("occupy")?, kernel("traffic")?];
        Ok(Perturbation {
            memory: Memory::allocate(context, TRAFFIC_BYTES, TRAFFIC_BYTES)?,
            kernels,
        })
    }

    /// Starts the work of a kind and returns at once.
    pub(super) fn start(&self, kind: u32, multiprocessors: u32) -> Result<(), DeviceError> {
        for load in loads(kind, multiprocessors) {
            let Some((_, kernel, stream)) =
                self.kernels.iter().find(|(symbol, ..)| *symbol == load.symbol)
            else {
                continue;
            };
            let launch = Launch {
                grid: [load.blocks, 1, 1],
                block: [256, 1, 1],
                ..Launch::new(ModuleId::new(), load.symbol)
            };
            let words = (TRAFFIC_BYTES / 4) as u32;
            let values = [
                self.memory.address().to_le_bytes().to_vec(),
                words.to_le_bytes().to_vec(),
                load.rounds.to_le_bytes().to_vec(),
            ];
            kernel.launch(stream, &launch, &values)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_and_the_first_is_idle() {
        assert_eq!(loads(0, 132), Vec::new());
        let seen: Vec<_> = (1..4).chain(5..8).chain(9..12).map(|kind| loads(kind, 132)).collect();
        for (index, load) in seen.iter().enumerate() {
            assert!(!load.is_empty() && !seen[..index].contains(load), "{index}: {load:?}");
        }
        assert!(loads(u32::MAX, 1).iter().all(|load| load.blocks >= 1));
    }

    #[test]
    fn the_text_parses() {
        let module = assay_ptx::parse(TEXT);
        assert_eq!(module.map(|module| module.functions.len()).ok(), Some(2));
    }
}
