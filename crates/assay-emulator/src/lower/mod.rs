//! Lowers a parsed module to [`Code`]: resolved slots, resolved functions, flat jumps.

mod arithmetic;
mod body;
mod bulk;
mod cluster;
mod constants;
mod control;
mod convert;
mod family;
mod float;
mod half;
mod independent;
mod layout;
mod matrix;
mod mbarrier;
mod memory;
mod video;
mod warp;
mod wgmma;
mod wide;
mod wmma;

pub(crate) use layout::{SharedLayout, variables};

use std::collections::HashMap;

use assay_ptx::Module;
use assay_ptx::module::FunctionKind;

use crate::program::{Code, CompileError, Constant, Function};
use body::Body;
use layout::Layout;

/// What lowering knows about the module while it goes through the bodies.
pub(crate) struct Context<'m> {
    pub(crate) module: &'m Module,
    pub(crate) layout: Layout,
    pub(crate) code: Code,
    pub(crate) wide: bool,
    pub(crate) contract: Option<u64>,
    /// The function that owns each branch table.
    pub(crate) tables: Vec<usize>,
    constants: HashMap<Constant, u32>,
    constant_rows: u32,
}

impl Context<'_> {
    /// The slot of a constant, shared by all who use it.
    pub(crate) fn constant(&mut self, constant: Constant) -> u32 {
        if let Some(&row) = self.constants.get(&constant) {
            return row | crate::execute::frame::CONSTANT;
        }
        let row = self.constant_rows;
        self.constant_rows += constant.rows() as u32;
        self.code.constants.push(constant);
        self.constants.insert(constant, row);
        row | crate::execute::frame::CONSTANT
    }
}

/// Lowers all functions of a module.
pub(crate) fn module(
    module: &Module,
    wide: bool,
    contract: Option<u64>,
) -> Result<Code, CompileError> {
    if module.address_size != 64 {
        return Err(CompileError::AddressSize { bits: module.address_size });
    }
    let mut context = Context {
        module,
        layout: Layout::new(module),
        code: Code::default(),
        wide,
        contract,
        tables: Vec::new(),
        constants: HashMap::new(),
        constant_rows: 0,
    };
    for (index, function) in module.functions.iter().enumerate() {
        let lowered = if function.kind == FunctionKind::Declaration {
            declaration(&function.name)
        } else {
            Body::lower(&mut context, index)
        };
        context.code.by_name.insert(function.name.clone(), index);
        context.code.functions.push(lowered);
    }
    layout::place_frames(&mut context);
    Ok(context.code)
}

fn declaration(name: &str) -> Function {
    Function {
        name: name.to_owned(),
        kernel: false,
        entry: u32::MAX,
        resources: crate::program::Resources::default(),
        shared: SharedLayout::default(),
        parameters: Vec::new(),
        parameter_bytes: 0,
        parameter_places: Vec::new(),
        return_places: Vec::new(),
        rows: 0,
        predicates: 0,
        local_bytes: 0,
        calls: false,
        independent: false,
        unsupported: None,
    }
}
