//! Observers see every access and barrier of a launch, and change nothing.

mod common;

use assay_emulator::{LaunchConfig, Machine, MachineConfig, MemoryAccess, Observer, Space};
use common::{compile, line_of, pointer_kernel};

#[derive(Default)]
struct Recorder {
    accesses: Vec<(Space, bool, u32, u32, u32)>,
    barriers: Vec<(u64, u32)>,
}

impl Observer for Recorder {
    const MEMORY: bool = true;
    const BARRIERS: bool = true;

    fn access(&mut self, access: &MemoryAccess<'_>) {
        let seen = (access.space, access.write, access.bytes, access.mask, access.line);
        self.accesses.push(seen);
    }

    fn barrier(&mut self, block: u64, barrier: u32) {
        self.barriers.push((block, barrier));
    }
}

#[test]
fn an_observer_sees_accesses_and_barriers() {
    let source = pointer_kernel(
        ".shared .align 4 .b8 tile[128];",
        "    mov.u32 %r2, tile;
    mad.lo.s32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1; // store
    bar.sync 3;
    setp.lt.u32 %p1, %r1, 4;
    mad.wide.u32 %rd2, %r1, 8, %rd1;
    @%p1 st.global.v2.u32 [%rd2], {%r1, %r1}; // vector
    red.global.add.u32 [%rd1], 1; // atomic",
    );
    let mut machine = Machine::new(MachineConfig::default());
    let buffer = machine.allocate(256, 256).unwrap();
    let parameters = buffer.to_le_bytes().to_vec();
    let config = LaunchConfig { grid: [2, 1, 1], parameters, ..LaunchConfig::default() };
    let program = compile(&source);
    let watched = machine.launch_observed(&program, "test", &config, Recorder::default());
    let (statistics, seen) = watched.unwrap();
    let line = |text: &str| line_of(&source, text);
    let one = [
        (Space::Shared, true, 4, u32::MAX, line("// store")),
        (Space::Global, true, 8, 0xf, line("// vector")),
        (Space::Global, true, 4, u32::MAX, line("// atomic")),
    ];
    assert_eq!(seen.accesses, [one, one].concat());
    assert_eq!(seen.barriers, [(0, 3), (1, 3)]);
    let alone = machine.launch(&program, "test", &config).unwrap();
    assert_eq!(alone, statistics);
}
