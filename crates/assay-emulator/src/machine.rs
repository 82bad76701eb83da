//! The machine: memory, and launches of kernels on it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::arithmetic::tensor::TensorModel;
use crate::execute::frame::{LANES, Row};
use crate::fault::{Fault, FaultKind};
use crate::launch;
use crate::memory::{AllocationError, Memory};
use crate::observer::{NoObserver, Observer};
use crate::program::Program;
use crate::schedule::Schedule;
use crate::watch::Watch;

/// What the emulated chip has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineConfig {
    /// Compute capability times ten: 80 is `sm_80`.
    pub architecture: u32,
    /// Whose tensor cores it has; those of the architecture by default.
    pub tensor_model: Option<TensorModel>,
    /// Multiprocessors; with the limits below they decide how many blocks are resident.
    pub multiprocessors: u32,
    /// Bytes of global memory.
    pub memory_bytes: u64,
    /// Threads per multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Blocks per multiprocessor.
    pub blocks_per_multiprocessor: u32,
    /// 32-bit registers per multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Bytes of shared memory per multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of shared memory that a block may have, opted in.
    pub shared_per_block: u32,
    /// Threads of the host that one launch may use: 0 for as many as there are cores. More than
    /// one run the blocks of kernels that do not communicate; the results are the same.
    pub workers: u32,
}

impl Default for MachineConfig {
    /// An A100-like chip with few multiprocessors, so that more blocks than fit are common.
    fn default() -> MachineConfig {
        MachineConfig {
            architecture: 80,
            tensor_model: None,
            multiprocessors: 8,
            memory_bytes: 8 << 30,
            threads_per_multiprocessor: 2048,
            blocks_per_multiprocessor: 32,
            registers_per_multiprocessor: 65_536,
            shared_per_multiprocessor: 164 << 10,
            shared_per_block: 163 << 10,
            workers: 0,
        }
    }
}

impl MachineConfig {
    /// Whose tensor cores the chip has.
    pub fn tensor_model(&self) -> TensorModel {
        self.tensor_model.unwrap_or_else(|| TensorModel::of(self.architecture))
    }
}

impl MachineConfig {
    /// A small chip of an architecture, with the memory and the limits of its multiprocessors
    /// (CUDA programming guide, technical specifications per compute capability).
    pub fn of(architecture: u32) -> MachineConfig {
        // Kilobytes of shared memory of a multiprocessor, its threads and its blocks.
        let (shared, threads, blocks) = match architecture {
            0..75 => (96, 2048, 32),
            75..80 => (64, 1024, 16),
            86 | 88 => (100, 1536, 16),
            89 | 120.. => (100, 1536, 24),
            90..120 => (228, 2048, 32),
            80..90 => (164, 2048, 32),
        };
        // From sm_80 on, each block takes one kilobyte for the system.
        let reserved = u32::from(architecture >= 80);
        MachineConfig {
            architecture,
            threads_per_multiprocessor: threads,
            blocks_per_multiprocessor: blocks,
            shared_per_multiprocessor: shared << 10,
            shared_per_block: (shared - reserved) << 10,
            ..MachineConfig::default()
        }
    }
}

/// The most threads that a block may have.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// The largest block along each axis.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// The largest grid along each axis.
pub const MAX_GRID: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];

/// Where in their error bounds the approximate instructions lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Approximation {
    /// The real value, rounded to nearest.
    #[default]
    Nearest,
    /// Anywhere that the ISA allows, as a fixed function of seed, instruction and operands.
    Seeded(u64),
}

/// A launch.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchConfig {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads per block along x, y, z.
    pub block: [u32; 3],
    /// Blocks per cluster along x, y, z. `[1, 1, 1]` leaves it to the kernel's
    /// `.reqnctapercluster`.
    pub cluster: [u32; 3],
    /// Refuse more blocks than are resident at once, as a barrier of the whole grid needs.
    pub cooperative: bool,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The parameters, packed as [`Program::parameters`] lays them out.
    pub parameters: Vec<u8>,
    /// The order of what could run at the same time.
    pub schedule: Schedule,
    /// Where approximate results lie.
    pub approximation: Approximation,
    /// Fuse bare `mul` and `add` pairs as ptxas may, chosen by this seed.
    pub contract_multiply_add: Option<u64>,
    /// Warp instructions after which the launch is stopped as a runaway.
    pub instruction_budget: u64,
    /// What shared and local memory and registers hold at first, in every byte.
    pub poison: u8,
    /// What the kernel's timers show.
    pub timers: Timers,
}

/// What `%clock64` and `%globaltimer` show: one cycle for each warp instruction of the launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// Cycles at the launch's start.
    pub cycles: u64,
    /// Nanoseconds at the launch's start.
    pub nanoseconds: u64,
    /// Picoseconds of a cycle: 1000 for a clock of 1 GHz.
    pub cycle_ps: u32,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { cycles: 0, nanoseconds: 0, cycle_ps: 1000 }
    }
}

impl Timers {
    /// `%clock64` after so many instructions.
    pub fn cycles_after(&self, instructions: u64) -> u64 {
        self.cycles.wrapping_add(instructions)
    }

    /// `%globaltimer` after so many instructions.
    pub fn nanoseconds_after(&self, instructions: u64) -> u64 {
        let passed = u128::from(instructions) * u128::from(self.cycle_ps) / 1000;
        self.nanoseconds.wrapping_add(passed as u64)
    }
}

impl Default for LaunchConfig {
    fn default() -> LaunchConfig {
        LaunchConfig {
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: [1; 3],
            cooperative: false,
            shared_bytes: 0,
            parameters: Vec::new(),
            schedule: Schedule::InOrder,
            approximation: Approximation::Nearest,
            contract_multiply_add: None,
            instruction_budget: 10_000_000_000,
            poison: 0x55,
            timers: Timers::default(),
        }
    }
}

/// What a launch did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaunchStatistics {
    /// Instructions times active lanes.
    pub lane_operations: u64,
    /// Instructions, counted once per warp.
    pub warp_instructions: u64,
    /// Blocks run.
    pub blocks: u64,
    /// Blocks that could be resident at once.
    pub resident_blocks: u64,
    /// What the kernel printed.
    pub output: String,
}

/// An emulated GPU: memory, and the variables of the programs that ran on it.
#[derive(Debug)]
pub struct Machine {
    pub(crate) config: MachineConfig,
    pub(crate) memory: Memory,
    /// Addresses of the variables of each program, by its id.
    loaded: HashMap<u64, Vec<u64>>,
    /// Programs compiled again with contraction, by id and seed.
    contracted: HashMap<(u64, u64), Program>,
    /// Shown how far each launch is.
    pub(crate) watch: Option<Arc<Watch>>,
}

impl Machine {
    /// A machine with empty memory.
    pub fn new(config: MachineConfig) -> Machine {
        let memory = Memory::new(config.memory_bytes);
        Machine { config, memory, loaded: HashMap::new(), contracted: HashMap::new(), watch: None }
    }

    /// Shows how far each launch is from now on, to whoever holds the other end.
    pub fn watch(&mut self, watch: Arc<Watch>) {
        self.watch = Some(watch);
    }

    /// What the machine was made with.
    pub fn config(&self) -> &MachineConfig {
        &self.config
    }

    /// Bytes that can still be allocated.
    pub fn available_bytes(&self) -> u64 {
        self.memory.available()
    }

    /// Allocates zeroed memory and returns its device address. `alignment` is a power of two.
    ///
    /// # Errors
    /// When memory runs out, or the alignment is no power of two.
    pub fn allocate(&mut self, bytes: u64, alignment: u64) -> Result<u64, AllocationError> {
        self.memory.allocate(bytes, alignment, 0)
    }

    /// Allocates zeroed memory at an address that is `skew` bytes more than a multiple of
    /// `alignment`. Nothing in front of it or behind it can be touched.
    ///
    /// # Errors
    /// As [`Machine::allocate`], and when the skew is not less than the alignment.
    pub fn allocate_skewed(
        &mut self,
        bytes: u64,
        alignment: u64,
        skew: u64,
    ) -> Result<u64, AllocationError> {
        self.memory.allocate(bytes, alignment, skew)
    }

    /// Frees what [`Machine::allocate`] or [`Machine::allocate_skewed`] returned.
    ///
    /// # Errors
    /// When the address is not the start of an allocation.
    pub fn free(&mut self, address: u64) -> Result<(), AllocationError> {
        self.memory.free(address)
    }

    /// Copies bytes to device memory.
    ///
    /// # Errors
    /// When the range leaves its allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), AllocationError> {
        self.memory.host_bytes_mut(address, bytes.len() as u64)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Copies bytes from device memory.
    ///
    /// # Errors
    /// When the range leaves its allocation.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), AllocationError> {
        bytes.copy_from_slice(self.memory.host_bytes(address, bytes.len() as u64)?);
        Ok(())
    }

    /// Fills device memory with one byte.
    ///
    /// # Errors
    /// When the range leaves its allocation.
    pub fn fill(&mut self, address: u64, length: u64, byte: u8) -> Result<(), AllocationError> {
        self.memory.host_bytes_mut(address, length)?.fill(byte);
        Ok(())
    }

    /// A range of device memory, for the host to read and write in place.
    ///
    /// # Errors
    /// When the range leaves its allocation.
    pub fn bytes_mut(&mut self, address: u64, length: u64) -> Result<&mut [u8], AllocationError> {
        self.memory.host_bytes_mut(address, length)
    }

    /// Copies within device memory.
    ///
    /// # Errors
    /// When a range leaves its allocation.
    pub fn copy(&mut self, from: u64, to: u64, length: u64) -> Result<(), AllocationError> {
        const PIECE: u64 = 1 << 20;
        self.memory.host_bytes(from, length)?;
        self.memory.host_bytes_mut(to, length)?;
        let mut piece = vec![0; length.min(PIECE) as usize];
        for offset in (0..length).step_by(PIECE as usize) {
            let piece = &mut piece[..(length - offset).min(PIECE) as usize];
            self.read(from + offset, piece)?;
            self.write(to + offset, piece)?;
        }
        Ok(())
    }

    /// The address of a module variable of a program, loading the program if needed.
    pub fn variable(&mut self, program: &Program, name: &str) -> Option<u64> {
        let index = program.inner.variables.iter().position(|variable| variable.name == name)?;
        let addresses = self.load(program).ok()?;
        addresses.get(index).copied()
    }

    /// Forgets a program: frees its variables.
    pub fn unload(&mut self, program: &Program) {
        for address in self.loaded.remove(&program.inner.id).unwrap_or_default() {
            // The addresses came from this memory, so freeing them cannot fail.
            let _ = self.memory.free(address);
        }
        self.contracted.retain(|(id, _), _| *id != program.inner.id);
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// The fault that stopped it, or what is wrong with the launch.
    pub fn launch(
        &mut self,
        program: &Program,
        symbol: &str,
        config: &LaunchConfig,
    ) -> Result<LaunchStatistics, Fault> {
        self.launch_observed(program, symbol, config, NoObserver).map(|(statistics, _)| statistics)
    }

    /// Runs a kernel to its end, watched by an observer, which is given back.
    ///
    /// # Errors
    /// As [`Machine::launch`].
    pub fn launch_observed<O: Observer>(
        &mut self,
        program: &Program,
        symbol: &str,
        config: &LaunchConfig,
        observer: O,
    ) -> Result<(LaunchStatistics, O), Fault> {
        launch::check(&self.config, program, symbol, config)?;
        let variables = self.load(program).map_err(|error| {
            let reason = format!("the module's variables cannot be allocated: {error}");
            Fault::of_launch(FaultKind::InvalidLaunch { reason }, symbol)
        })?;
        let program = self.contracted(program, config);
        launch::run(self, &program, symbol, config, &variables, observer)
    }

    /// The program to run: compiled again when the launch asks for contraction.
    fn contracted(&mut self, program: &Program, config: &LaunchConfig) -> Program {
        let Some(seed) = config.contract_multiply_add else {
            return program.clone();
        };
        let again = || program.recompiled(seed);
        self.contracted.entry((program.inner.id, seed)).or_insert_with(again).clone()
    }

    /// The addresses of a program's variables; the first call allocates and initialises them.
    fn load(&mut self, program: &Program) -> Result<Vec<u64>, AllocationError> {
        if let Some(addresses) = self.loaded.get(&program.inner.id) {
            return Ok(addresses.clone());
        }
        let mut addresses = Vec::new();
        for variable in &program.inner.variables {
            let alignment = variable.alignment.max(1).next_power_of_two();
            let address = self.memory.allocate(variable.bytes, alignment, 0)?;
            self.write(address, &variable.initial)?;
            addresses.push(address);
        }
        launch::relocate(self, program, &addresses)?;
        for (variable, &address) in program.inner.variables.iter().zip(&addresses) {
            if variable.constant {
                self.memory.protect(address);
            }
        }
        self.loaded.insert(program.inner.id, addresses.clone());
        Ok(addresses)
    }
}

/// A row with the same value in all lanes.
pub(crate) fn broadcast(value: u32) -> Row {
    Row([value; LANES])
}
