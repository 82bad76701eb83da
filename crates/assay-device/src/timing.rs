//! What a device says of its clocks and caches.

/// The numbers that a measurement is held against, as the driver tells them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimingFacts {
    /// Whether a launch returns before its kernel has run. Where it does not, a kernel that waits
    /// for the host waits for ever.
    pub asynchronous: bool,
    /// The L2 cache, in bytes.
    pub l2_bytes: u64,
    /// How much of it can be set aside for lines that stay, in bytes.
    pub l2_persisting_bytes_max: u64,
    /// The fastest clock of the multiprocessors, in MHz.
    pub sm_clock_max_mhz: f64,
    /// The fastest clock of the memory, in MHz.
    pub memory_clock_max_mhz: f64,
    /// The width of the memory's bus, in bits.
    pub memory_bus_bits: u32,
    /// The smallest step that [`Device::elapsed_ns`](crate::Device::elapsed_ns) can show, in
    /// nanoseconds.
    pub event_resolution_ns: f64,
    /// Copy engines that work beside kernels.
    pub copy_engines: u32,
    /// Whether errors in device memory are corrected.
    pub ecc: bool,
    /// Where the device sits on the PCI bus, domain, bus and device, if it sits on one.
    pub pci: Option<[u32; 3]>,
}

impl TimingFacts {
    /// The most bytes a second that the memory can move: two transfers of the bus's width a clock.
    pub fn memory_bytes_per_s_max(&self) -> f64 {
        2.0 * self.memory_clock_max_mhz * 1e6 * f64::from(self.memory_bus_bits) / 8.0
    }
}
