//! A probe whose kernel does not end: the control of whoever stops probes that hang.

use assay_device::{Allocation, Argument, Launch, StreamId};

use super::{Probe, ProbeError, Quantity};

const TIMING: &str = include_str!("../../../../kernels/measure/timing.ptx");

/// Waits for a word that nobody writes. It is none of [`super::probes`].
pub const HANG: Probe = Probe {
    title: "a kernel that does not end",
    quantities: &[Quantity {
        name: "control_hang",
        unit: "ns",
        method: "a control: a kernel that waits for a word that nobody writes",
    }],
    run: |context| {
        context.attempt_all(HANG.quantities, |context| {
            let module = context.load("timing.ptx", TIMING)?;
            let device = &mut *context.device;
            let flag = device.allocate(&Allocation { poison: 0, ..Allocation::new(4) })?;
            let state = device.allocate(&Allocation::new(48))?;
            let arguments = vec![
                Argument::Buffer(flag),
                Argument::u32(1),
                Argument::u64(u64::MAX),
                Argument::Buffer(state),
            ];
            device
                .launch(StreamId::DEFAULT, &Launch { arguments, ..Launch::new(module, "hold") })?;
            device.synchronize()?;
            Err(ProbeError::Wrong("the kernel that never ends has ended".to_owned()))
        })
    },
};
