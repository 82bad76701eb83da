//! Lowers the SIMD video instructions.

use assay_ptx::module::Instruction;
use assay_ptx::opcode::{Base, Group, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use crate::arithmetic::video::{Video, VideoLane, VideoOperation};

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (operation, bits) = operation(i)?;
    let signed: Vec<bool> = i.opcode.types.iter().map(|ty| ty.is_signed()).collect();
    let (signed_d, signed_a, signed_b) = match signed[..] {
        [d, a, b] => (d, a, b),
        [a, b] => (false, a, b),
        _ => return Err(Unsupported),
    };
    let saturates = i.opcode.has(Modifier::Sat);
    let adds = i.opcode.has(Modifier::AddOperation);
    let video = Video { operation, bits, signed_a, signed_b, signed_d, saturates, adds };
    let mut operands = body.operands(i, &[Type::B32; 4])?;
    operands.immediate = video.pack();
    body.run(body.pick::<VideoLane>(), operands);
    Ok(())
}

fn operation(i: &Instruction) -> Lowered<(VideoOperation, u32)> {
    Ok(match i.opcode.base {
        Base::Vadd2 => (VideoOperation::Add, 16),
        Base::Vsub2 => (VideoOperation::Subtract, 16),
        Base::Vavrg2 => (VideoOperation::Average, 16),
        Base::Vabsdiff2 => (VideoOperation::Distance, 16),
        Base::Vmin2 => (VideoOperation::Minimum, 16),
        Base::Vmax2 => (VideoOperation::Maximum, 16),
        Base::Vset2 => (comparison(i)?, 16),
        Base::Vadd4 => (VideoOperation::Add, 8),
        Base::Vsub4 => (VideoOperation::Subtract, 8),
        Base::Vavrg4 => (VideoOperation::Average, 8),
        Base::Vabsdiff4 => (VideoOperation::Distance, 8),
        Base::Vmin4 => (VideoOperation::Minimum, 8),
        Base::Vmax4 => (VideoOperation::Maximum, 8),
        Base::Vset4 => (comparison(i)?, 8),
        _ => return Err(Unsupported),
    })
}

fn comparison(i: &Instruction) -> Lowered<VideoOperation> {
    Ok(match i.opcode.modifiers.of_group(Group::Comparison) {
        Some(Modifier::Eq) => VideoOperation::Equal,
        Some(Modifier::Ne) => VideoOperation::Differ,
        Some(Modifier::Lt) => VideoOperation::Less,
        Some(Modifier::Le) => VideoOperation::LessOrEqual,
        Some(Modifier::Gt) => VideoOperation::Greater,
        Some(Modifier::Ge) => VideoOperation::GreaterOrEqual,
        _ => return Err(Unsupported),
    })
}
