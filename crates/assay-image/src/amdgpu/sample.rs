//! Code objects made for tests: small, true to the compiler's layout, and easy to damage.

use super::descriptor;

/// A kernel of a sample, as its metadata and its descriptor describe it.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    /// What the metadata says, key by key; `.name` and `.symbol` are added.
    pub(super) keys: Vec<(&'static str, Value)>,
    /// What the descriptor holds.
    pub(super) descriptor: Vec<u8>,
}

/// A value of the metadata.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(u64),
    Text(String),
    Array(Vec<Value>),
    Map(Vec<(&'static str, Value)>),
}

/// A kernel of 20 vector registers, 64 bytes of LDS, 16 of scratch and 24 of arguments, in waves
/// of 32 and work-groups of at most 256.
pub(super) fn kernel(name: &str) -> Kernel {
    let argument = |offset, size, kind: &str| {
        Value::Map(vec![
            (".offset", Value::Number(offset)),
            (".size", Value::Number(size)),
            (".value_kind", Value::Text(kind.to_owned())),
        ])
    };
    let arguments = vec![
        argument(0, 8, "global_buffer"),
        argument(8, 4, "by_value"),
        argument(16, 4, "hidden_block_count_x"),
    ];
    let keys = vec![
        (".args", Value::Array(arguments)),
        (".vgpr_count", Value::Number(20)),
        (".sgpr_count", Value::Number(18)),
        (".group_segment_fixed_size", Value::Number(64)),
        (".private_segment_fixed_size", Value::Number(16)),
        (".max_flat_workgroup_size", Value::Number(256)),
        (".wavefront_size", Value::Number(32)),
        (".vgpr_spill_count", Value::Number(3)),
        (".sgpr_spill_count", Value::Number(1)),
        (".workgroup_processor_mode", Value::Number(1)),
        (".kernarg_segment_size", Value::Number(24)),
    ];
    let mut descriptor = vec![0; descriptor::BYTES as usize];
    descriptor[0] = 64;
    descriptor[4] = 16;
    descriptor[8] = 24;
    // 24 registers in steps of eight, work-groups on a pair of compute units, waves of 32.
    descriptor[48] = 2;
    descriptor[51] = 1 << 5;
    descriptor[57] = 1 << 2;
    Kernel { name: name.to_owned(), keys, descriptor }
}

impl Kernel {
    /// Puts another value under a key, or takes the key away.
    pub(super) fn set(&mut self, key: &'static str, value: impl Into<Option<u64>>) {
        self.keys.retain(|(other, _)| *other != key);
        self.keys.extend(value.into().map(|value| (key, Value::Number(value))));
    }

    fn value(&self) -> Value {
        let mut pairs = self.keys.clone();
        pairs.push((".name", Value::Text(self.name.clone())));
        pairs.push((".symbol", Value::Text(format!("{}.kd", self.name))));
        Value::Map(pairs)
    }
}

/// The metadata of some kernels for gfx1100.
pub(super) fn metadata(kernels: &[Kernel]) -> Vec<u8> {
    let kernels = kernels.iter().map(Kernel::value).collect();
    let version = vec![Value::Number(1), Value::Number(2)];
    let mut bytes = Vec::new();
    Value::Map(vec![
        ("amdhsa.kernels", Value::Array(kernels)),
        ("amdhsa.target", Value::Text("amdgcn-amd-amdhsa--gfx1100".to_owned())),
        ("amdhsa.version", Value::Array(version)),
    ])
    .write(&mut bytes);
    bytes
}

impl Value {
    /// Writes msgpack, each value in a wide form or a narrow one as its size asks.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Value::Number(value @ 0..=0x7f) => to.push(*value as u8),
            Value::Number(value) => {
                to.push(0xcf);
                to.extend(value.to_be_bytes());
            }
            Value::Text(text) => write_text(text, to),
            Value::Array(values) => {
                to.push(0xdc);
                to.extend((values.len() as u16).to_be_bytes());
                for value in values {
                    value.write(to);
                }
            }
            Value::Map(pairs) => {
                to.push(0xde);
                to.extend((pairs.len() as u16).to_be_bytes());
                for (key, value) in pairs {
                    write_text(key, to);
                    value.write(to);
                }
            }
        }
    }
}

fn write_text(text: &str, to: &mut Vec<u8>) {
    to.push(0xda);
    to.extend((text.len() as u16).to_be_bytes());
    to.extend(text.as_bytes());
}

/// A linked code object of some kernels for gfx1100.
pub(super) fn code_object(kernels: &[Kernel]) -> Vec<u8> {
    code_object_with(&metadata(kernels), kernels)
}

/// As [`code_object`], with this metadata.
pub(super) fn code_object_with(metadata: &[u8], kernels: &[Kernel]) -> Vec<u8> {
    let mut note = Vec::new();
    note.extend(7_u32.to_le_bytes());
    note.extend((metadata.len() as u32).to_le_bytes());
    note.extend(32_u32.to_le_bytes());
    note.extend(b"AMDGPU\0\0");
    note.extend(metadata);

    let descriptors: Vec<u8> =
        kernels.iter().flat_map(|kernel| kernel.descriptor.clone()).collect();
    let (mut names, mut symbols) = (vec![0], vec![0; 24]);
    for (index, kernel) in kernels.iter().enumerate() {
        symbols.extend((names.len() as u32).to_le_bytes());
        // A global object in section 2.
        symbols.extend([0x11, 0, 2, 0]);
        symbols.extend((RODATA_ADDRESS + index as u64 * descriptor::BYTES).to_le_bytes());
        symbols.extend(descriptor::BYTES.to_le_bytes());
        names.extend(format!("{}.kd\0", kernel.name).bytes());
    }
    let comment = b"Linker: LLD 19.1.7\0Some clang version 19.1.7\0".to_vec();
    elf(&[
        (".note", 7, 0, 0, note),
        (".rodata", 1, RODATA_ADDRESS, 0, descriptors),
        (".comment", 1, 0, 0, comment),
        (".dynsym", 11, 0, 5, symbols),
        (".dynstr", 3, 0, 0, names),
    ])
}

/// Where the descriptors lie in memory.
const RODATA_ADDRESS: u64 = 0x1000;

/// An ELF file for gfx1100 of sections: name, type, address, linked section, contents.
fn elf(sections: &[(&str, u32, u64, u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut names = vec![0];
    let names_section = (".shstrtab", 3, 0, 0, Vec::new());
    for (name, kind, address, link, contents) in sections.iter().chain([&names_section]) {
        let name_at = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        let contents = if *name == ".shstrtab" { &names } else { contents };
        file.resize(file.len().next_multiple_of(8), 0);
        headers.extend(name_at.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        headers.extend(0_u64.to_le_bytes());
        headers.extend(address.to_le_bytes());
        headers.extend((file.len() as u64).to_le_bytes());
        headers.extend((contents.len() as u64).to_le_bytes());
        headers.extend(link.to_le_bytes());
        headers.extend([0; 20]);
        file.extend(contents);
    }
    let table = file.len() as u64;
    file.extend(headers);
    let mut header = b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0".to_vec();
    header.extend([3, 0, 224, 0, 1, 0, 0, 0]);
    header.extend([0; 16]);
    header.extend(table.to_le_bytes());
    header.extend(0x41_u32.to_le_bytes());
    let count = sections.len() as u16 + 2;
    for field in [64, 56, 0, 64, count, count - 1] {
        header.extend(field.to_le_bytes());
    }
    file[..64].copy_from_slice(&header);
    file
}
