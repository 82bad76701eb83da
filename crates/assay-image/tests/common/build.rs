//! Images built byte by byte, so that a test says what is wrong in them.

/// Which of the two generations of CUDA ELF headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Generation {
    /// Up to ptxas 12.8 for `sm_90` and below.
    First,
    /// Since.
    Second,
}

/// A kernel to put into an image.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) registers: u32,
    pub(crate) stack: u32,
    /// The size of its `.nv.shared` section, if it has one.
    pub(crate) shared: Option<u64>,
    /// Records of its `.nv.info`.
    pub(crate) records: Vec<u8>,
}

impl Kernel {
    pub(crate) fn new(name: &'static str) -> Kernel {
        Kernel { name, registers: 40, stack: 0, shared: None, records: Vec::new() }
    }
}

pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) data: Vec<u8>,
    /// The size that the header claims, where it is not that of the data.
    pub(crate) size: Option<u64>,
}

pub(crate) fn section(name: &str, kind: u32, data: Vec<u8>) -> Section {
    Section { name: name.to_owned(), kind, flags: 0, link: 0, info: 0, data, size: None }
}

/// What the header of an ELF file says.
pub(crate) struct Header {
    pub(crate) os_abi: u8,
    pub(crate) abi_version: u8,
    pub(crate) kind: u16,
    pub(crate) machine: u16,
    pub(crate) flags: u32,
}

/// An ELF file of these sections; the empty one and that of the names are added.
pub(crate) fn elf(header: &Header, sections: Vec<Section>) -> Vec<u8> {
    let mut all = vec![section("", 0, Vec::new())];
    all.extend(sections);
    all.push(section(".shstrtab", 3, Vec::new()));
    let mut names = Vec::new();
    let name_places: Vec<u32> = all
        .iter()
        .map(|section| {
            let place = names.len() as u32;
            names.extend(section.name.bytes().chain([0]));
            place
        })
        .collect();
    let count = all.len();
    all[count - 1].data = names;
    let mut bytes = elf_header(header, count as u16);
    let mut headers = Vec::new();
    for (section, name) in all.iter().zip(name_places) {
        let offset = bytes.len() as u64;
        bytes.extend(&section.data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        headers.extend(name.to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        let size = section.size.unwrap_or(section.data.len() as u64);
        for word in [section.flags, 0, offset, size] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(section.link.to_le_bytes());
        headers.extend(section.info.to_le_bytes());
        headers.extend([0; 16]);
    }
    let table = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes.extend(headers);
    bytes
}

fn elf_header(header: &Header, sections: u16) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.extend([header.os_abi, header.abi_version]);
    bytes.resize(16, 0);
    bytes.extend(header.kind.to_le_bytes());
    bytes.extend(header.machine.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.resize(48, 0);
    bytes.extend(header.flags.to_le_bytes());
    bytes.extend(64_u16.to_le_bytes());
    bytes.resize(58, 0);
    bytes.extend(64_u16.to_le_bytes());
    bytes.extend(sections.to_le_bytes());
    bytes.extend((sections - 1).to_le_bytes());
    bytes
}

/// A record with a payload of words.
pub(crate) fn sized(attribute: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![4, attribute];
    bytes.extend((4 * words.len() as u16).to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// A record with a value of two bytes.
pub(crate) fn half(attribute: u8, value: u16) -> Vec<u8> {
    let [low, high] = value.to_le_bytes();
    vec![3, attribute, low, high]
}

/// The header of a CUDA image.
pub(crate) fn cuda_header(generation: Generation, architecture: u32) -> Header {
    match generation {
        Generation::First => Header {
            os_abi: 0x33,
            abi_version: 7,
            kind: 2,
            machine: 190,
            flags: 0x0050_0500 | architecture,
        },
        Generation::Second => Header {
            os_abi: 0x41,
            abi_version: 8,
            kind: 2,
            machine: 190,
            flags: 0x0600_0004 | architecture << 8,
        },
    }
}

/// A CUDA image of these kernels.
pub(crate) fn cubin(generation: Generation, architecture: u32, kernels: &[Kernel]) -> Vec<u8> {
    elf(&cuda_header(generation, architecture), cuda_sections(generation, kernels))
}

/// The sections of a CUDA image: names, symbols, the note, `.nv.info`, then three a kernel.
pub(crate) fn cuda_sections(generation: Generation, kernels: &[Kernel]) -> Vec<Section> {
    let (mut names, mut symbols, mut info) = (vec![0], vec![0; 24], Vec::new());
    let mut parts = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let symbol = index as u32 + 1;
        symbols.extend((names.len() as u32).to_le_bytes());
        symbols.extend([0x12, 0x10, 5, 0]);
        symbols.extend([0; 16]);
        names.extend(kernel.name.bytes().chain([0]));
        info.extend(sized(0x2f, &[symbol, kernel.registers]));
        info.extend(sized(0x11, &[symbol, kernel.stack]));
        parts.push(section(&format!(".text.{}", kernel.name), 1, vec![0; 16]));
        let name = format!(".nv.info.{}", kernel.name);
        parts.push(section(&name, 0x7000_0000, kernel.records.clone()));
        if let Some(size) = kernel.shared {
            let mut shared = section(&format!(".nv.shared.{}", kernel.name), 8, Vec::new());
            shared.size = Some(size);
            parts.push(shared);
        }
    }
    let mut table = section(".symtab", 2, symbols);
    table.link = 1;
    let mut sections = vec![section(".strtab", 3, names), table];
    if generation == Generation::Second {
        sections.push(section(".note.nv.tkinfo", 7, tool_note("13.0, V13.0.88")));
    }
    sections.push(section(".nv.info", 0x7000_0000, info));
    sections.extend(parts);
    sections
}

fn tool_note(release: &str) -> Vec<u8> {
    let mut descriptor = vec![0; 24];
    descriptor.extend(b"\0ptxas\0Cuda compilation tools, release ");
    descriptor.extend(release.bytes().chain(*b"\0-arch sm_90a -m 64 \0"));
    let mut note = Vec::new();
    for word in [12, descriptor.len() as u32, 2000] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"NVIDIA Corp\0");
    note.extend(descriptor);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// How the payload of a fatbin's entry is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Packing {
    Stored,
    Lz4,
    Zstd,
}

/// One entry of a fatbin; `kind` is 1 for PTX and 2 for an ELF image.
pub(crate) fn entry(kind: u16, architecture: u32, payload: &[u8], packing: Packing) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let (packed, flag) = match packing {
        Packing::Stored => (payload.to_vec(), 0),
        Packing::Lz4 => (lz4_flex::block::compress(payload), 0x2000),
        Packing::Zstd => (ruzstd::encoding::compress_to_vec(payload, level), 0x8000),
    };
    let (compressed_size, size) = match packing {
        Packing::Stored => (0, 0),
        _ => (packed.len() as u32, payload.len() as u64),
    };
    let mut padded = packed;
    padded.resize(padded.len().next_multiple_of(8), 0);
    let mut bytes = Vec::new();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0x101_u16.to_le_bytes());
    bytes.extend(64_u32.to_le_bytes());
    bytes.extend((padded.len() as u64).to_le_bytes());
    for word in [compressed_size, 0, 0x0001_0008, architecture, 0, 0, 0x11 | flag, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(size.to_le_bytes());
    bytes.extend(padded);
    bytes
}

/// A fatbin of these entries.
pub(crate) fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend((entries.iter().map(Vec::len).sum::<usize>() as u64).to_le_bytes());
    bytes.extend(entries.concat());
    bytes
}

/// A shared library of the host with these sections.
pub(crate) fn host(sections: Vec<Section>) -> Vec<u8> {
    elf(&Header { os_abi: 0, abi_version: 0, kind: 3, machine: 62, flags: 0 }, sections)
}

/// A few images of every kind, which mutations start from.
pub(crate) fn corpus() -> Vec<Vec<u8>> {
    let kernels = || {
        let mut bounded = Kernel::new("bounded");
        bounded.shared = Some(1088);
        bounded.stack = 160;
        bounded.records = [
            sized(0x05, &[256, 1, 1]),
            sized(0x17, &[0, 0x0008_0001, 0x0011_f000]),
            sized(0x17, &[0, 0, 0x0021_f000]),
            sized(0x3d, &[2, 1, 1]),
            half(0x1b, 128),
            half(0x19, 12),
            vec![2, 0x4c, 3, 0, 1, 0x3e, 0, 0, 3, 0x5f, 1, 1],
        ]
        .concat();
        [bounded, Kernel::new("plain")]
    };
    let first = cubin(Generation::First, 80, &kernels());
    let second = cubin(Generation::Second, 90, &kernels());
    let ptx = b".version 9.0\n.target sm_90\n.visible .entry k() { ret; }\n".repeat(9);
    let stored = fatbin(&[entry(2, 80, &first, Packing::Stored)]);
    let packed = fatbin(&[
        entry(2, 80, &first, Packing::Lz4),
        entry(2, 90, &second, Packing::Zstd),
        entry(1, 90, &ptx, Packing::Zstd),
        entry(8, 90, b"intermediate", Packing::Stored),
    ]);
    let both = [stored.clone(), vec![0; 8], packed.clone()].concat();
    let library = host(vec![
        section(".text", 1, vec![0x90; 40]),
        section(".nv_fatbin", 1, both),
        section("__nv_relfatbin", 1, stored.clone()),
    ]);
    vec![first, second, stored, packed, library]
}
