//! Runs the operations of one stage over tiles: vectors of elements, one operation at a time.
//!
//! A tile holds neighbouring elements along one variable: the last axis of an elementwise stage, or
//! the reduced index of a reduction. What an operation does to a tile is the [`Domain`]'s business.

use assay_num::Format;

use crate::error::EvaluationError;
use crate::extent::integer_operation;
use crate::frame::{Frame, Landing, StageFrame};
use crate::plan::{Access, Binary, Int, IntId, Node, NodeId, Source, Stage, StageScan};
use crate::schedule::{Schedule, Step};
use crate::tile::{Domain, Lanes, Place, Plane, TILE, Tile, first_lanes};

/// The literal 1.
const ONE: Node = Node::Literal(1.0f64.to_bits());
/// An offset that is not to be read.
const NOWHERE: usize = usize::MAX;

/// A tile of whole numbers; `bad` lanes divided by zero, overflowed or were read from outside.
struct IntTile {
    value: [i64; TILE],
    bad: Lanes,
}

/// Runs one stage on one thread.
pub(crate) struct Machine<'a, D: Domain> {
    pub(crate) domain: &'a D,
    pub(crate) frame: &'a Frame<'a>,
    pub(crate) position: usize,
    pub(crate) stage: &'a Stage,
    pub(crate) own: &'a StageFrame,
    /// The inputs, then the stages.
    planes: &'a [Plane<'a>],
    /// The variable that tiles run along.
    pub(crate) along: usize,
    pub(crate) schedule: Schedule,
    /// What a scan starts from.
    initial: Option<Schedule>,
    pub(crate) tiles: Vec<D::Tile>,
    ints: Vec<IntTile>,
    offsets: [usize; TILE],
    /// The value of each variable in lane 0.
    pub(crate) variables: Vec<i64>,
}

type Ran<T> = Result<T, EvaluationError>;

impl<'a, D: Domain> Machine<'a, D> {
    /// A machine for the stage at `position`; `planes` are the inputs, then the stages.
    pub(crate) fn new(
        domain: &'a D,
        frame: &'a Frame<'a>,
        (position, own): (usize, &'a StageFrame),
        planes: &'a [Plane<'a>],
    ) -> Self {
        let stage = &frame.program.stages[position];
        let along = match (&stage.reduction, &stage.scan) {
            (Some(_), _) => stage.rank,
            (_, Some(scan)) => crate::scan::lane_axis(&own.region, scan.axis),
            _ => stage.rank.max(1) - 1,
        };
        Self {
            domain,
            frame,
            position,
            stage,
            own,
            planes,
            along,
            schedule: Schedule::new(stage, own, along, D::BOUNDED),
            initial: Schedule::initial(stage, own, along),
            tiles: stage.nodes.iter().map(|_| D::Tile::new()).collect(),
            ints: stage.ints.iter().map(|_| IntTile { value: [0; TILE], bad: 0 }).collect(),
            offsets: [NOWHERE; TILE],
            variables: vec![0; stage.rank + 1],
        }
    }

    /// Computes what does not change along a run, for runs of `count` elements.
    pub(crate) fn begin_run(&mut self, count: usize) -> Ran<()> {
        let count = count.min(TILE);
        for at in 0..self.schedule.constant.len() {
            let step = self.schedule.constant[at];
            self.step(step, 1)?;
            match step {
                Step::Node(node) => self.tiles[node].broadcast(count),
                Step::Int(int) => {
                    let tile = &mut self.ints[int];
                    let first = tile.value[0];
                    tile.value[..count].fill(first);
                    tile.bad = if tile.bad & 1 == 1 { Lanes::MAX } else { 0 };
                }
            }
        }
        Ok(())
    }

    /// Computes what changes, for `count` elements from the machine's variables on.
    pub(crate) fn run_tile(&mut self, count: usize) -> Ran<()> {
        for at in 0..self.schedule.varying.len() {
            self.step(self.schedule.varying[at], count)?;
        }
        Ok(())
    }

    /// Puts what a scan starts from into its carry, for `count` elements.
    pub(crate) fn begin_scan(&mut self, scan: &StageScan, count: usize) -> Ran<()> {
        let Some(initial) = self.initial.take() else { return Ok(()) };
        let step = std::mem::replace(&mut self.schedule, initial);
        let ran = self.begin_run(count).and_then(|()| self.run_tile(count));
        self.initial = Some(std::mem::replace(&mut self.schedule, step));
        ran?;
        self.carry(scan, scan.initial, count);
        Ok(())
    }

    /// Makes the tile of `node` the carry of the next step, rounded as the state is carried.
    pub(crate) fn carry(&mut self, scan: &StageScan, node: NodeId, count: usize) {
        if node != scan.carry {
            self.tiles.swap(node, scan.carry);
        }
        self.domain.carry(self.position, &mut self.tiles[scan.carry], count);
    }

    fn step(&mut self, step: Step, count: usize) -> Ran<()> {
        match step {
            Step::Int(int) => self.int_step(int, count),
            Step::Node(node) => self.node_step(node, count),
        }
    }

    fn int_step(&mut self, id: IntId, count: usize) -> Ran<()> {
        let stage = self.stage;
        if let Some(form) = &self.own.affine[id] {
            let (start, step) = (form.at(&self.variables), form.coefficients[self.along]);
            let tile = &mut self.ints[id];
            for (lane, value) in tile.value[..count].iter_mut().enumerate() {
                *value = start.wrapping_add(step.wrapping_mul(lane as i64));
            }
            tile.bad = 0;
            return Ok(());
        }
        match &stage.ints[id] {
            Int::Gather(access) => return self.gather(id, access, count),
            Int::Operation(operator, a, b) => {
                let operator = *operator;
                self.combine(id, (*a, *b), count, |a, b| {
                    integer_operation(operator, a, b, String::new).ok()
                });
            }
            Int::Least(a, b) => self.combine(id, (*a, *b), count, |a, b| Some(a.min(b))),
            Int::Largest(a, b) => self.combine(id, (*a, *b), count, |a, b| Some(a.max(b))),
            // Those always have affine forms.
            Int::Literal(_) | Int::Dim(_) | Int::Index(_) => self.ints[id].bad = Lanes::MAX,
        }
        Ok(())
    }

    fn combine(
        &mut self,
        id: IntId,
        (a, b): (IntId, IntId),
        count: usize,
        operation: impl Fn(i64, i64) -> Option<i64>,
    ) {
        let (before, rest) = self.ints.split_at_mut(id);
        let (a, b, out) = (&before[a], &before[b], &mut rest[0]);
        out.bad = a.bad | b.bad;
        for lane in 0..count {
            match operation(a.value[lane], b.value[lane]) {
                Some(value) => out.value[lane] = value,
                None => out.bad |= 1 << lane,
            }
        }
    }

    fn gather(&mut self, id: IntId, access: &Access, count: usize) -> Ran<()> {
        let landing = self.schedule.gather_landing[id].unwrap_or(0);
        let plane = self.planes[self.plane_of(access.source)];
        self.find_offsets(access, landing, count)?;
        let tile = &mut self.ints[id];
        tile.bad = 0;
        for lane in 0..count {
            let value = plane.value.get(self.offsets[lane]).copied().unwrap_or(0.0);
            tile.value[lane] = value as i64;
            if !is_index(value) {
                tile.bad |= 1 << lane;
            }
        }
        Ok(())
    }

    fn plane_of(&self, source: Source) -> usize {
        match source {
            Source::Input(input) => input,
            other => {
                let stage = self.frame.program.stage_of(other).unwrap_or(0);
                self.frame.inputs.len() + stage
            }
        }
    }

    /// Fills the offsets of an access; an index outside is an error where the guard holds.
    fn find_offsets(&mut self, access: &Access, landing: usize, count: usize) -> Ran<()> {
        match &self.own.landings[landing] {
            Landing::Direct(offset) => {
                let (start, step) = (offset.at(&self.variables), offset.coefficients[self.along]);
                for (lane, at) in self.offsets[..count].iter_mut().enumerate() {
                    *at = start.wrapping_add(step.wrapping_mul(lane as i64)) as usize;
                }
                Ok(())
            }
            Landing::Checked { shape, first, strides } => {
                let lanes = first_lanes(count);
                let read =
                    access.guard.map_or(lanes, |guard| self.tiles[guard].truths(count)) & lanes;
                let mut bad = 0;
                self.offsets[..count].fill(0);
                for (axis, index) in access.indices.iter().enumerate() {
                    let tile = &self.ints[*index];
                    bad |= tile.bad;
                    let (first, stride) = (first[axis], strides[axis]);
                    let inside = 0..shape[axis];
                    let mut leaves = false;
                    for (at, index) in self.offsets[..count].iter_mut().zip(&tile.value) {
                        leaves |= !inside.contains(index);
                        let step = index.wrapping_sub(first).wrapping_mul(stride);
                        *at = at.wrapping_add(step as usize);
                    }
                    if leaves {
                        let outside = |lane: &usize| !inside.contains(&tile.value[*lane]);
                        bad |= (0..count).filter(outside).fold(0, |bad, lane| bad | 1 << lane);
                    }
                }
                if bad & read != 0 {
                    return Err(self.explain(access, (bad & read).trailing_zeros() as usize));
                }
                let unread = (bad | !read) & lanes;
                if unread != 0 {
                    let unread = |lane: &usize| unread >> lane & 1 == 1;
                    (0..count).filter(unread).for_each(|lane| self.offsets[lane] = NOWHERE);
                }
                Ok(())
            }
        }
    }

    fn node_step(&mut self, id: NodeId, count: usize) -> Ran<()> {
        let stage = self.stage;
        if let Node::Read(access) = &stage.nodes[id] {
            return self.read(id, access, count);
        }
        for int in stage.nodes[id].integers() {
            if self.ints[int].bad & first_lanes(count) != 0 {
                let lane = self.ints[int].bad.trailing_zeros() as usize;
                return Err(self.explain_int(int, lane));
            }
        }
        self.compute(id, count);
        Ok(())
    }

    fn read(&mut self, id: NodeId, access: &Access, count: usize) -> Ran<()> {
        let landing = self.schedule.read_landing[id].unwrap_or(0);
        let plane = self.planes[self.plane_of(access.source)];
        if let Landing::Direct(offset) = &self.own.landings[landing] {
            let start = offset.at(&self.variables) as usize;
            let stride = offset.coefficients[self.along] as isize;
            let place = Place::Strided { start, stride };
            self.domain.load(plane, place, &mut self.tiles[id], count);
            return Ok(());
        }
        self.find_offsets(access, landing, count)?;
        self.domain.load(plane, Place::Each(&self.offsets), &mut self.tiles[id], count);
        Ok(())
    }

    /// Computes a node that is no read.
    fn compute(&mut self, id: NodeId, count: usize) {
        let (before, rest) = self.tiles.split_at_mut(id);
        let (out, domain) = (&mut rest[0], self.domain);
        let ints = &self.ints;
        match &self.stage.nodes[id] {
            Node::Literal(bits) => {
                domain.literal(f64::from_bits(*bits), out);
                out.broadcast(count);
            }
            Node::Scalar(scalar) => {
                domain.literal(self.frame.program.scalars[*scalar], out);
                out.broadcast(count);
            }
            Node::Whole(int) => domain.whole(&ints[*int].value, out, count),
            Node::Unary(operation, a) => domain.unary(*operation, &before[*a], out, count),
            Node::Binary(Binary::Divide, a, b) if self.stage.nodes[*a] == ONE => {
                domain.reciprocal([&before[*a], &before[*b]], out, count);
            }
            Node::Binary(operation, a, b) => {
                domain.binary(*operation, [&before[*a], &before[*b]], out, count);
            }
            Node::Round(format, a) => domain.round(*format, &before[*a], out, count),
            Node::Near(format, a) => domain.near(*format, &before[*a], out, count),
            Node::Field { word, field, width } => {
                let fields = [&ints[*field].value[..], &ints[*width].value[..]];
                domain.field(&before[*word], fields, out, count);
            }
            Node::Compare(how, a, b) => {
                domain.compare(*how, [&before[*a], &before[*b]], out, count);
            }
            Node::CompareWhole(how, a, b) => {
                domain.compare_whole(*how, [&ints[*a].value, &ints[*b].value], out, count);
            }
            Node::And(a, b) => domain.and([&before[*a], &before[*b]], out, count),
            Node::Or(a, b) => domain.or([&before[*a], &before[*b]], out, count),
            Node::Not(a) => domain.not(&before[*a], out, count),
            Node::Select(c, a, b) => {
                domain.select([&before[*c], &before[*a], &before[*b]], out, count);
            }
            Node::Read(_) | Node::Carry => {}
        }
    }

    /// The part of an input that a read walks with stride 1 for `count` terms, if it does.
    pub(crate) fn neighbours(&self, id: NodeId, count: usize) -> Option<Plane<'a>> {
        let Node::Read(access) = &self.stage.nodes[id] else { return None };
        let Landing::Direct(offset) = &self.own.landings[self.schedule.read_landing[id]?] else {
            return None;
        };
        let plane = self.planes[self.plane_of(access.source)];
        if offset.coefficients[self.along] != 1 || !plane.error.is_empty() {
            return None;
        }
        let start = offset.at(&self.variables) as usize;
        let value = plane.value.get(start..start.checked_add(count)?)?;
        Some(Plane { value, ..plane })
    }

    /// The value of an integer expression in lane 0, computed by itself.
    pub(crate) fn int_value(&self, id: IntId) -> Ran<i64> {
        if let Some(form) = &self.own.affine[id] {
            return Ok(form.at(&self.variables));
        }
        self.scalar_int(id, &self.variables)
    }

    fn scalar_int(&self, id: IntId, variables: &[i64]) -> Ran<i64> {
        let of = |id: IntId| self.scalar_int(id, variables);
        match &self.stage.ints[id] {
            Int::Literal(value) => Ok(*value),
            Int::Dim(dim) => Ok(self.frame.dims[*dim]),
            Int::Index(variable) => Ok(variables[*variable]),
            Int::Operation(operator, a, b) => {
                integer_operation(*operator, of(*a)?, of(*b)?, || self.int_text(id))
            }
            Int::Least(a, b) => Ok(of(*a)?.min(of(*b)?)),
            Int::Largest(a, b) => Ok(of(*a)?.max(of(*b)?)),
            Int::Gather(access) => {
                let offset = self.scalar_offset(access, variables)?;
                let plane = self.planes[self.plane_of(access.source)];
                let value = plane.value.get(offset).copied().unwrap_or(0.0);
                if !is_index(value) {
                    let tensor = self.frame.program.source_name(access.source).to_owned();
                    return Err(EvaluationError::IndexNotWhole { tensor, value });
                }
                Ok(value as i64)
            }
        }
    }

    fn scalar_offset(&self, access: &Access, variables: &[i64]) -> Ran<usize> {
        let (shape, stored) = self.frame.stored(access.source);
        let strides = crate::frame::strides(&stored);
        let mut offset = 0i64;
        for (axis, id) in access.indices.iter().enumerate() {
            let index = self.scalar_int(*id, variables)?;
            if index < 0 || index >= shape[axis] {
                return Err(EvaluationError::IndexOutOfRange {
                    tensor: self.frame.program.source_name(access.source).to_owned(),
                    axis,
                    index,
                    extent: shape[axis],
                });
            }
            let step = index.wrapping_sub(stored[axis].start).wrapping_mul(strides[axis]);
            offset = offset.wrapping_add(step);
        }
        Ok(offset as usize)
    }

    fn variables_at(&self, lane: usize) -> Vec<i64> {
        let mut variables = self.variables.clone();
        if let Some(value) = variables.get_mut(self.along) {
            *value += lane as i64;
        }
        variables
    }

    /// Why an access fails in a lane.
    fn explain(&self, access: &Access, lane: usize) -> EvaluationError {
        match self.scalar_offset(access, &self.variables_at(lane)) {
            Err(error) => error,
            Ok(_) => inconsistent(),
        }
    }

    fn explain_int(&self, id: IntId, lane: usize) -> EvaluationError {
        match self.scalar_int(id, &self.variables_at(lane)) {
            Err(error) => error,
            Ok(_) => inconsistent(),
        }
    }

    /// An integer expression as text.
    fn int_text(&self, id: IntId) -> String {
        let of = |id: IntId| self.int_text(id);
        match &self.stage.ints[id] {
            Int::Literal(value) => value.to_string(),
            Int::Dim(dim) => self.frame.program.signature.dims[*dim].clone(),
            Int::Index(variable) if *variable == self.stage.rank => self.stage.index.clone(),
            Int::Index(variable) => format!("index {variable}"),
            Int::Operation(operator, a, b) => {
                format!("({} {} {})", of(*a), operator.spelling().0, of(*b))
            }
            Int::Least(a, b) => format!("min({}, {})", of(*a), of(*b)),
            Int::Largest(a, b) => format!("max({}, {})", of(*a), of(*b)),
            Int::Gather(access) => {
                let indices: Vec<String> = access.indices.iter().map(|i| of(*i)).collect();
                let name = self.frame.program.source_name(access.source);
                format!("{name}[{}]", indices.join(", "))
            }
        }
    }
}

/// Whether a value is a whole number that an index can be.
fn is_index(value: f64) -> bool {
    value.abs() < 9.2e18 && (value as i64) as f64 == value
}

/// Vectorised and scalar index arithmetic disagree: a bug here, never the input's fault.
fn inconsistent() -> EvaluationError {
    EvaluationError::Request { message: "index arithmetic is inconsistent; please report".into() }
}

/// Whether reads of a format's elements into fp32 can round.
pub(crate) fn rounds_into_f32(format: Option<Format>) -> bool {
    matches!(format, Some(Format::F64 | Format::I32 | Format::U32 | Format::I64 | Format::U64))
}
