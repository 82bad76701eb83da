//! One run of a kernel, or of several over the same buffers: what goes in, and what must come out.

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, Launch, ModuleId, Schedule, StreamId,
    TensorMap,
};
use assay_num::Format;

/// Every kernel runs under each of these.
pub(crate) const SCHEDULES: [Schedule; 3] =
    [Schedule::InOrder, Schedule::Seeded(1), Schedule::Seeded(2)];

/// Warps' instructions that no case comes near.
const BUDGET: u64 = 1 << 27;

/// Decides about the bytes of a buffer.
type Judge = Box<dyn Fn(&[u8]) -> Result<(), String>>;

/// What a buffer must hold in the end.
pub(crate) struct Want {
    bytes: usize,
    judge: Judge,
}

/// A part of a parameter that is a structure.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The address of a buffer's byte: the buffer's number in its case, bytes from its start.
    Address(usize, u64),
    /// A tensor map over a buffer, which is an argument of its own.
    Map(usize, TensorMap),
}

struct Buffer {
    initial: Option<Vec<u8>>,
    want: Want,
}

/// One launch.
struct Step {
    kernel: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    cooperative: bool,
    shared: u32,
    arguments: Vec<Vec<Field>>,
}

/// Buffers, launches, and what must come of them.
pub(crate) struct Case {
    buffers: Vec<Buffer>,
    steps: Vec<Step>,
    any_order: bool,
}

/// A number as it lies in memory.
pub(crate) trait Plain: Copy + PartialEq + std::fmt::Debug {
    fn bytes(self) -> Vec<u8>;
}

macro_rules! plain {
    ($($name:ty)*) => {$(
        impl Plain for $name {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
    )*};
}

plain!(u8 i8 u16 i16 u32 i32 u64 i64 u128 f32 f64);

/// The bytes of numbers.
pub(crate) fn bytes<T: Plain>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|&value| value.bytes()).collect()
}

/// The bytes of values rounded to a format.
pub(crate) fn pack(format: Format, values: &[f64]) -> Vec<u8> {
    format.encode_slice(values)
}

/// Values as they are once stored in a format.
pub(crate) fn rounded(format: Format, values: &[f64]) -> Vec<f64> {
    format.decode_slice(&format.encode_slice(values))
}

/// Exactly these bytes.
pub(crate) fn exact_bytes(want: Vec<u8>) -> Want {
    Want {
        bytes: want.len(),
        judge: Box::new(move |got| {
            let Some(at) = got.iter().zip(&want).position(|(got, want)| got != want) else {
                return Ok(());
            };
            let end = |bytes: &[u8]| bytes[at..].iter().take(8).copied().collect::<Vec<_>>();
            Err(format!("byte {at} on is {:02x?}, not {:02x?}", end(got), end(&want)))
        }),
    }
}

/// Exactly these numbers.
pub(crate) fn exact<T: Plain>(want: &[T]) -> Want {
    exact_bytes(bytes(want))
}

/// Numbers of a format within `absolute + relative * |want|` of these.
pub(crate) fn close(format: Format, want: &[f64], relative: f64, absolute: f64) -> Want {
    let want = want.to_vec();
    Want {
        bytes: format.storage_bytes(want.len()),
        judge: Box::new(move |got| {
            for (at, (got, want)) in format.decode_slice(got).into_iter().zip(&want).enumerate() {
                let same = got == *want || got.is_nan() && want.is_nan();
                let near = (got - want).abs() <= absolute + relative * want.abs();
                if !same && !near {
                    return Err(format!("element {at} is {got}, not {want}"));
                }
            }
            Ok(())
        }),
    }
}

/// Whatever a function accepts.
pub(crate) fn judged(bytes: usize, judge: impl Fn(&[u8]) -> Result<(), String> + 'static) -> Want {
    Want { bytes, judge: Box::new(judge) }
}

impl Step {
    fn new(kernel: &'static str) -> Step {
        let (grid, block, cluster) = ([1; 3], [1; 3], [1; 3]);
        let (cooperative, arguments) = (false, Vec::new());
        Step { kernel, grid, block, cluster, cooperative, shared: 0, arguments }
    }
}

impl Case {
    /// One block of one thread of the kernel of that name, or whose symbol alone contains it.
    pub(crate) fn new(kernel: &'static str) -> Case {
        Case { buffers: Vec::new(), steps: vec![Step::new(kernel)], any_order: false }
    }

    /// Another launch after those before, over the same buffers.
    pub(crate) fn then(mut self, kernel: &'static str) -> Case {
        self.steps.push(Step::new(kernel));
        self
    }

    fn step(&mut self) -> &mut Step {
        self.steps.last_mut().expect("a case has a launch")
    }

    /// Blocks and threads along x.
    pub(crate) fn sized(self, blocks: u32, threads: u32) -> Case {
        self.grid([blocks, 1, 1]).block([threads, 1, 1])
    }

    pub(crate) fn grid(mut self, grid: [u32; 3]) -> Case {
        self.step().grid = grid;
        self
    }

    pub(crate) fn block(mut self, block: [u32; 3]) -> Case {
        self.step().block = block;
        self
    }

    /// Blocks of a cluster.
    pub(crate) fn cluster(mut self, cluster: [u32; 3]) -> Case {
        self.step().cluster = cluster;
        self
    }

    /// All blocks are resident together, as for `cudaLaunchCooperativeKernel`.
    pub(crate) fn cooperatively(mut self) -> Case {
        self.step().cooperative = true;
        self
    }

    /// Dynamic shared memory, in bytes.
    pub(crate) fn shared(mut self, bytes: u32) -> Case {
        self.step().shared = bytes;
        self
    }

    /// The next argument: a tensor map over a new buffer, which starts out poisoned or with this.
    pub(crate) fn maps(mut self, map: TensorMap, initial: Option<Vec<u8>>, want: Want) -> Case {
        let number = self.buffers.len();
        self.buffers.push(Buffer { initial, want });
        self.structure(vec![Field::Map(number, map)])
    }

    fn buffer(mut self, initial: Option<Vec<u8>>, want: Want) -> Case {
        let number = self.buffers.len();
        self.buffers.push(Buffer { initial, want });
        self.structure(vec![Field::Address(number, 0)])
    }

    /// The next argument: a buffer that the kernel must not change.
    pub(crate) fn reads<T: Plain>(self, values: &[T]) -> Case {
        self.reads_bytes(bytes(values))
    }

    /// As [`Case::reads`], of values rounded to a format.
    pub(crate) fn reads_as(self, format: Format, values: &[f64]) -> Case {
        self.reads_bytes(pack(format, values))
    }

    pub(crate) fn reads_bytes(self, bytes: Vec<u8>) -> Case {
        self.buffer(Some(bytes.clone()), exact_bytes(bytes))
    }

    /// The next argument: a poisoned buffer, as large as what it must hold in the end.
    pub(crate) fn writes(self, want: Want) -> Case {
        self.buffer(None, want)
    }

    /// The next argument: a buffer with something in it that the kernel changes.
    pub(crate) fn updates(self, initial: Vec<u8>, want: Want) -> Case {
        self.buffer(Some(initial), want)
    }

    /// The next argument: a buffer of this case again, by its number.
    pub(crate) fn again(self, buffer: usize) -> Case {
        self.structure(vec![Field::Address(buffer, 0)])
    }

    /// The next argument: a number.
    pub(crate) fn value<T: Plain>(self, value: T) -> Case {
        self.structure(vec![Field::Bytes(value.bytes())])
    }

    /// The next argument: a structure.
    pub(crate) fn structure(mut self, fields: Vec<Field>) -> Case {
        self.step().arguments.push(fields);
        self
    }

    /// Other orders may give other bytes, each of which is right.
    pub(crate) fn in_any_order(mut self) -> Case {
        self.any_order = true;
        self
    }

    /// The kernels that the case launches, each once.
    pub(crate) fn kernels(&self) -> Vec<&'static str> {
        let mut kernels: Vec<_> = self.steps.iter().map(|step| step.kernel).collect();
        kernels.dedup();
        kernels
    }

    /// Runs the case under every schedule.
    ///
    /// # Errors
    /// What the device answers.
    pub(crate) fn run(
        &self,
        device: &mut dyn Device,
        module: ModuleId,
        symbol: impl Fn(&'static str) -> String,
    ) -> Result<Result<(), String>, DeviceError> {
        let mut first: Option<Vec<Vec<u8>>> = None;
        for schedule in SCHEDULES {
            let results = self.run_once(device, module, &symbol, schedule)?;
            for (number, (buffer, got)) in self.buffers.iter().zip(&results).enumerate() {
                if let Err(reason) = (buffer.want.judge)(got) {
                    return Ok(Err(format!("{schedule:?}: buffer {number}: {reason}")));
                }
            }
            match &first {
                Some(first) if !self.any_order && *first != results => {
                    return Ok(Err(format!("{schedule:?} gives other bytes than in order")));
                }
                _ => first = Some(results),
            }
        }
        Ok(Ok(()))
    }

    fn run_once(
        &self,
        device: &mut dyn Device,
        module: ModuleId,
        symbol: &impl Fn(&'static str) -> String,
        schedule: Schedule,
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut ids = Vec::new();
        for buffer in &self.buffers {
            let id = device.allocate(&Allocation::new(buffer.want.bytes as u64))?;
            if let Some(initial) = &buffer.initial {
                device.write(id, 0, initial)?;
            }
            ids.push(id);
        }
        for step in &self.steps {
            let symbol = symbol(step.kernel);
            let arguments = step.arguments.iter();
            let launch = Launch {
                grid: step.grid,
                block: step.block,
                cluster: step.cluster,
                cooperative: step.cooperative,
                shared_bytes: step.shared,
                arguments: arguments
                    .map(|f| argument(device, &ids, f))
                    .collect::<Result<_, _>>()?,
                schedule,
                instruction_budget: BUDGET,
                ..Launch::new(module, &symbol)
            };
            device.launch(StreamId::DEFAULT, &launch)?;
        }
        let mut results = Vec::new();
        for (id, buffer) in ids.into_iter().zip(&self.buffers) {
            let mut bytes = vec![0; buffer.want.bytes];
            device.read(id, 0, &mut bytes)?;
            device.free(id)?;
            results.push(bytes);
        }
        Ok(results)
    }
}

fn argument(
    device: &mut dyn Device,
    ids: &[BufferId],
    fields: &[Field],
) -> Result<Argument, DeviceError> {
    let mut bytes = Vec::new();
    for field in fields {
        match field {
            Field::Bytes(part) => bytes.extend(part),
            Field::Address(buffer, offset) => {
                let address = device.address(ids[*buffer])? + offset;
                bytes.extend(address.to_le_bytes());
            }
            Field::Map(buffer, map) => return device.tensor_map(ids[*buffer], map),
        }
    }
    Ok(Argument::Bytes(bytes))
}
