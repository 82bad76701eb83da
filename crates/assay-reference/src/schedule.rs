//! The order in which a stage's operations run, and which of them change along a run of tiles.

use crate::frame::{Landing, StageFrame};
use crate::plan::{Access, Int, IntId, Node, NodeId, Stage};

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Int(IntId),
    Node(NodeId),
}

/// The operations of a stage that its root needs, operands first.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Those that are the same for all elements of a run.
    pub(crate) constant: Vec<Step>,
    /// Those that are not.
    pub(crate) varying: Vec<Step>,
    /// For each integer its landing, if it is a gather.
    pub(crate) gather_landing: Vec<Option<usize>>,
    /// For each node its landing, if it is a read.
    pub(crate) read_landing: Vec<Option<usize>>,
}

impl Schedule {
    /// The schedule of `stage`, whose tiles run along the variable `along`; `bounded` in domains
    /// that carry errors.
    pub(crate) fn new(stage: &Stage, frame: &StageFrame, along: usize, bounded: bool) -> Self {
        let difference = stage.difference.filter(|_| bounded);
        Self::of_roots(stage, frame, along, [Some(stage.root), difference])
    }

    /// The schedule of what a scan starts from; none where `stage` is no scan.
    pub(crate) fn initial(stage: &Stage, frame: &StageFrame, along: usize) -> Option<Self> {
        let scan = stage.scan.as_ref()?;
        Some(Self::of_roots(stage, frame, along, [Some(scan.initial), None]))
    }

    fn of_roots(
        stage: &Stage,
        frame: &StageFrame,
        along: usize,
        roots: [Option<NodeId>; 2],
    ) -> Self {
        let is_gather = |int: &Int| matches!(int, Int::Gather(_));
        let is_read = |node: &Node| matches!(node, Node::Read(_));
        let mut next = 0..;
        let mut landings = |wanted: bool| if wanted { next.next() } else { None };
        let gather_landing = stage.ints.iter().map(|int| landings(is_gather(int))).collect();
        let read_landing = stage.nodes.iter().map(|node| landings(is_read(node))).collect();
        let mut schedule =
            Self { constant: Vec::new(), varying: Vec::new(), gather_landing, read_landing };
        let mut planner = Planner {
            stage,
            frame,
            along,
            int_varies: vec![None; stage.ints.len()],
            node_varies: vec![None; stage.nodes.len()],
        };
        for root in roots.into_iter().flatten() {
            planner.node(&mut schedule, root);
        }
        schedule
    }
}

struct Planner<'a> {
    stage: &'a Stage,
    frame: &'a StageFrame,
    along: usize,
    /// Whether each one scheduled so far varies.
    int_varies: Vec<Option<bool>>,
    node_varies: Vec<Option<bool>>,
}

impl Planner<'_> {
    /// Schedules a node after what it needs, and says whether it varies along a run.
    fn node(&mut self, schedule: &mut Schedule, id: NodeId) -> bool {
        if let Some(varies) = self.node_varies[id] {
            return varies;
        }
        let stage = self.stage;
        let node = &stage.nodes[id];
        if *node == Node::Carry {
            // Set from outside, before each step.
            self.node_varies[id] = Some(true);
            return true;
        }
        let varies = if let Node::Read(access) = node {
            self.access(schedule, access, schedule.read_landing[id].unwrap_or(0))
        } else {
            let operands = node.operands();
            let nodes = operands.into_iter().fold(false, |v, n| self.node(schedule, n) | v);
            node.integers().into_iter().fold(nodes, |v, i| self.int(schedule, i) | v)
        };
        self.node_varies[id] = Some(varies);
        let list = if varies { &mut schedule.varying } else { &mut schedule.constant };
        list.push(Step::Node(id));
        varies
    }

    fn int(&mut self, schedule: &mut Schedule, id: IntId) -> bool {
        if let Some(varies) = self.int_varies[id] {
            return varies;
        }
        let stage = self.stage;
        let varies = match (&self.frame.affine[id], &stage.ints[id]) {
            (Some(form), _) => form.coefficients[self.along] != 0,
            (None, Int::Gather(access)) => {
                self.access(schedule, access, schedule.gather_landing[id].unwrap_or(0))
            }
            (None, Int::Operation(_, a, b) | Int::Least(a, b) | Int::Largest(a, b)) => {
                self.int(schedule, *a) | self.int(schedule, *b)
            }
            (None, Int::Index(variable)) => *variable == self.along,
            (None, Int::Literal(_) | Int::Dim(_)) => false,
        };
        self.int_varies[id] = Some(varies);
        let list = if varies { &mut schedule.varying } else { &mut schedule.constant };
        list.push(Step::Int(id));
        varies
    }

    /// Schedules what an access needs; one that lands for certain needs nothing.
    fn access(&mut self, schedule: &mut Schedule, access: &Access, landing: usize) -> bool {
        if let Landing::Direct(offset) = &self.frame.landings[landing] {
            return offset.coefficients[self.along] != 0;
        }
        let guard = access.guard.is_some_and(|guard| self.node(schedule, guard));
        access.indices.iter().fold(guard, |v, i| self.int(schedule, *i) | v)
    }
}
