//! A device that answers what a test tells it to, and runs nothing.

use assay_device::{
    Allocation, BufferId, Device, DeviceError, DeviceFacts, GuardDamage, Image, KernelFacts,
    Launch, LaunchReport, ModuleId, MultiprocessorFacts, StreamId,
};

/// The answers.
pub(crate) struct Canned {
    pub(crate) facts: DeviceFacts,
    pub(crate) kernel: KernelFacts,
    pub(crate) blocks: u32,
}

impl Canned {
    /// What an H200 says of a kernel of 40 registers in blocks of 256 threads.
    pub(crate) fn h200() -> Canned {
        let facts = DeviceFacts {
            name: "canned".to_owned(),
            backend: "canned".to_owned(),
            architecture: "sm_90".to_owned(),
            driver: None,
            multiprocessors: 132,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [0x7fff_ffff, 65_535, 65_535],
            shared_per_block: 49_152,
            shared_per_block_opt_in: 232_448,
            registers_per_block: 65_536,
            multiprocessor: Some(MultiprocessorFacts {
                threads: 2048,
                blocks: 32,
                registers: 65_536,
                shared_bytes: 233_472,
                reserved_shared_bytes: 1024,
            }),
            memory_bytes: 1 << 40,
        };
        let kernel = KernelFacts {
            registers: 40,
            max_threads: 256,
            parameter_sizes: Some(vec![8, 8]),
            ..KernelFacts::default()
        };
        Canned { facts, kernel, blocks: 6 }
    }

    /// A device that allots nothing: it loads nothing and has nothing to say of a kernel.
    pub(crate) fn emulator() -> Canned {
        let mut device = Canned::h200();
        device.facts.multiprocessor = None;
        device
    }
}

/// A device that has no more than facts.
pub(crate) fn no_device() -> Box<dyn Device> {
    let Canned { facts, kernel, blocks } = Canned::emulator();
    let facts = DeviceFacts {
        name: "no device".to_owned(),
        backend: "none".to_owned(),
        architecture: "none".to_owned(),
        ..facts
    };
    Box::new(Canned { facts, kernel, blocks })
}

fn nothing<T>() -> Result<T, DeviceError> {
    Err(DeviceError::Unsupported { what: "everything".to_owned() })
}

impl Device for Canned {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn load(&mut self, _: &Image) -> Result<ModuleId, DeviceError> {
        match self.facts.multiprocessor {
            Some(_) => Ok(ModuleId::new()),
            None => nothing(),
        }
    }
    fn unload(&mut self, _: ModuleId) -> Result<(), DeviceError> {
        Ok(())
    }
    fn kernel_facts(&mut self, _: ModuleId, _: &str) -> Result<KernelFacts, DeviceError> {
        Ok(self.kernel.clone())
    }
    fn occupancy(
        &mut self,
        _: ModuleId,
        _: &str,
        _: u32,
        _: u32,
    ) -> Result<Option<u32>, DeviceError> {
        Ok(Some(self.blocks))
    }
    fn allocate(&mut self, _: &Allocation) -> Result<BufferId, DeviceError> {
        nothing()
    }
    fn free(&mut self, _: BufferId) -> Result<(), DeviceError> {
        nothing()
    }
    fn write(&mut self, _: BufferId, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        nothing()
    }
    fn read(&mut self, _: BufferId, _: u64, _: &mut [u8]) -> Result<(), DeviceError> {
        nothing()
    }
    fn address(&self, _: BufferId) -> Result<u64, DeviceError> {
        nothing()
    }
    fn guard_damage(&mut self, _: BufferId) -> Result<Option<GuardDamage>, DeviceError> {
        nothing()
    }
    fn launch(&mut self, _: StreamId, _: &Launch<'_>) -> Result<LaunchReport, DeviceError> {
        nothing()
    }
    fn synchronize(&mut self) -> Result<(), DeviceError> {
        nothing()
    }
}
