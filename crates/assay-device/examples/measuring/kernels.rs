//! The example's kernels: one that works for so many rounds, and one that waits for the host.

use assay_device::{
    Argument, Device, DeviceError, HostBufferId, HostKind, Image, Launch, ModuleId, StreamId,
};

const PTX: &str = "\
.version 7.0
.target sm_80
.address_size 64
.visible .entry work(.param .u32 rounds)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .f32 %f<3>;
    ld.param.u32 %r1, [rounds];
    mov.f32 %f1, 0f3f800000;
    mov.u32 %r2, 0;
again:
    fma.rn.f32 %f1, %f1, %f1, 0f3e800000;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra again;
    setp.eq.f32 %p1, %f1, 0f00000000;
    @%p1 trap;
    ret;
}
.visible .entry spin(.param .u64 flag, .param .u64 longest_ns)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [flag];
    ld.param.u64 %rd2, [longest_ns];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u64 %rd3, %globaltimer;
again:
    ld.volatile.global.u32 %r1, [%rd1];
    mov.u64 %rd4, %globaltimer;
    sub.u64 %rd5, %rd4, %rd3;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra done;
    setp.lt.u64 %p2, %rd5, %rd2;
    @%p2 bra again;
done:
    ret;
}
";

/// The loaded kernels.
pub(crate) struct Kernels {
    module: ModuleId,
}

impl Kernels {
    pub(crate) fn load(device: &mut dyn Device) -> Result<Kernels, DeviceError> {
        Ok(Kernels { module: device.load(&Image::ptx("measuring.ptx", PTX))? })
    }

    /// Starts blocks of one warp that each work for so many rounds.
    pub(crate) fn work(
        &self,
        device: &mut dyn Device,
        stream: StreamId,
        rounds: u32,
        blocks: u32,
    ) -> Result<(), DeviceError> {
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [32, 1, 1],
            arguments: vec![Argument::u32(rounds)],
            ..Launch::new(self.module, "work")
        };
        device.launch(stream, &launch).map(|_| ())
    }
}

/// A kernel that holds the stream until the host lets it go, or for 0.1 s.
pub(crate) struct Spinner {
    kernels: Kernels,
    flag: HostBufferId,
    address: u64,
}

impl Spinner {
    pub(crate) fn new(device: &mut dyn Device) -> Result<Spinner, DeviceError> {
        if !device.timing_facts().is_some_and(|facts| facts.asynchronous) {
            let what = "spinning: a launch runs at once".to_string();
            return Err(DeviceError::Unsupported { what });
        }
        let kernels = Kernels::load(device)?;
        let flag = device.allocate_host(4, HostKind::Mapped)?;
        let address = device.host_address(flag)?;
        Ok(Spinner { kernels, flag, address })
    }

    pub(crate) fn hold(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.store_host_word(self.flag, 0, 0)?;
        let launch = Launch {
            block: [1, 1, 1],
            arguments: vec![Argument::u64(self.address), Argument::u64(100_000_000)],
            ..Launch::new(self.kernels.module, "spin")
        };
        device.launch(StreamId::DEFAULT, &launch).map(|_| ())
    }

    pub(crate) fn release(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.store_host_word(self.flag, 0, 1)
    }
}
