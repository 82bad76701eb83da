//! The registers of one warp as the running instruction sees them, and the driver of lane
//! functions.
//!
//! Registers are stored lane by lane: a 32-bit register is one [`Row`] of 32 lanes, a 64-bit
//! register two rows, a predicate one `u32` with a bit per lane. 16-bit registers take a row and
//! keep the upper halves zero. An instruction reads whole rows, computes all lanes, and writes the
//! active ones; arithmetic cannot fault, so idle lanes may compute garbage.

/// Lanes per warp.
pub(crate) const LANES: usize = 32;

/// One 32-bit register of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Row(pub(crate) [u32; LANES]);

/// Two rows: one 64-bit register of a warp.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct WideRow([u64; LANES]);

/// A register operand: an index of a row of the warp, or of the constant pool when
/// [`CONSTANT`] is set.
pub(crate) type Slot = u32;
/// Marks a [`Slot`] of the constant pool, which all warps share.
pub(crate) const CONSTANT: Slot = 1 << 31;

/// An index of a predicate register of the warp.
pub(crate) type PredicateSlot = u16;
/// The predicate that is always true; it is never written.
pub(crate) const ALWAYS: PredicateSlot = 0;
/// The predicate that takes what nobody reads.
pub(crate) const DISCARDED: PredicateSlot = 1;
/// The first predicate free for registers.
pub(crate) const FIRST_PREDICATE: PredicateSlot = 2;

/// The operands of a lowered instruction. What each field means depends on the function that runs
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operands {
    /// The destination row.
    pub(crate) d: Slot,
    /// The first source row.
    pub(crate) a: Slot,
    /// The second source row.
    pub(crate) b: Slot,
    /// The third source row.
    pub(crate) c: Slot,
    /// Destination predicates (`p|q`).
    pub(crate) p: PredicateSlot,
    /// See `p`.
    pub(crate) q: PredicateSlot,
    /// A source predicate.
    pub(crate) r: PredicateSlot,
    /// Flags of the function.
    pub(crate) flags: u16,
    /// A number of the function: an offset, a table, a permutation.
    pub(crate) immediate: u64,
}

/// What lane functions may know besides their operands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parameters {
    /// [`Operands::immediate`].
    pub(crate) immediate: u64,
    /// [`Operands::flags`].
    pub(crate) flags: u16,
    /// The seed that places approximate results; 0 means correctly rounded.
    pub(crate) seed: u64,
}

/// The registers of the running warp.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) registers: *mut Row,
    pub(crate) constants: *const Row,
    pub(crate) predicates: *mut u32,
    /// Lanes that have not exited. A mask equal to it may write whole rows.
    pub(crate) alive: u32,
    /// See [`Parameters::seed`].
    pub(crate) seed: u64,
}

impl Frame {
    /// The address of an operand.
    ///
    /// # Safety
    /// `slot` must come from the lowering of the program whose registers and constants the frame
    /// points at: lowering counts the rows that it hands out, and the engine allocates that many.
    #[inline(always)]
    pub(crate) unsafe fn row(&self, slot: Slot) -> *const Row {
        let index = (slot & !CONSTANT) as usize;
        let base = if slot & CONSTANT == 0 { self.registers.cast_const() } else { self.constants };
        // SAFETY: the caller promises that the index is inside.
        unsafe { base.add(index) }
    }

    /// The lanes of a 32-bit operand.
    ///
    /// # Safety
    /// As for [`Frame::row`].
    #[inline(always)]
    pub(crate) unsafe fn lanes32(&self, slot: Slot) -> [u32; LANES] {
        // SAFETY: as promised for `row`; rows are initialised when they are allocated.
        unsafe { (*self.row(slot)).0 }
    }

    /// The lanes of a 64-bit operand.
    ///
    /// # Safety
    /// As for [`Frame::row`], and the slot must be one of a 64-bit register or constant.
    #[inline(always)]
    pub(crate) unsafe fn lanes64(&self, slot: Slot) -> [u64; LANES] {
        // SAFETY: 64-bit operands own two adjacent rows, and rows are aligned for u64.
        unsafe { (*self.row(slot).cast::<WideRow>()).0 }
    }

    /// Writes the lanes of `mask` of a 32-bit register.
    ///
    /// # Safety
    /// As for [`Frame::row`]; the slot must not be a constant.
    #[inline(always)]
    pub(crate) unsafe fn store32(&mut self, slot: Slot, lanes: [u32; LANES], mask: u32) {
        // SAFETY: the caller promises a slot of a register, and nothing else borrows the registers.
        let row = unsafe { &mut (*self.registers.add(slot as usize)).0 };
        if mask == self.alive {
            *row = lanes;
        } else {
            let mut mixed = *row;
            for lane in 0..LANES {
                let keep = ((mask >> lane) & 1).wrapping_sub(1);
                mixed[lane] = (mixed[lane] & keep) | (lanes[lane] & !keep);
            }
            *row = mixed;
        }
    }

    /// Writes the lanes of `mask` of a 64-bit register.
    ///
    /// # Safety
    /// As for [`Frame::store32`], and the slot must be one of a 64-bit register.
    #[inline(always)]
    pub(crate) unsafe fn store64(&mut self, slot: Slot, lanes: [u64; LANES], mask: u32) {
        // SAFETY: 64-bit registers own two adjacent rows, and rows are aligned for u64.
        let row = unsafe { &mut (*self.registers.add(slot as usize).cast::<WideRow>()).0 };
        if mask == self.alive {
            *row = lanes;
        } else {
            let mut mixed = *row;
            for lane in 0..LANES {
                let keep = u64::from((mask >> lane) & 1).wrapping_sub(1);
                mixed[lane] = (mixed[lane] & keep) | (lanes[lane] & !keep);
            }
            *row = mixed;
        }
    }

    /// The lanes where a predicate is true.
    ///
    /// # Safety
    /// As for [`Frame::row`], for predicates.
    #[inline(always)]
    pub(crate) unsafe fn predicate(&self, slot: PredicateSlot) -> u32 {
        // SAFETY: the caller promises that the index is inside.
        unsafe { *self.predicates.add(usize::from(slot)) }
    }

    /// Writes the lanes of `mask` of a predicate.
    ///
    /// # Safety
    /// As for [`Frame::predicate`]; the slot must not be [`ALWAYS`].
    #[inline(always)]
    pub(crate) unsafe fn set_predicate(&mut self, slot: PredicateSlot, lanes: u32, mask: u32) {
        // SAFETY: the caller promises that the index is inside, and nothing else borrows it.
        let word = unsafe { &mut *self.predicates.add(usize::from(slot)) };
        *word = (*word & !mask) | (lanes & mask);
    }
}

/// A value that a lane function takes or gives.
pub(crate) trait Element: Copy {
    /// How 32 of them are held while an instruction runs.
    type Stored: Copy + Default;
    /// Reads an operand.
    ///
    /// # Safety
    /// As for [`Frame::row`]; the slot must be one of this element's width.
    unsafe fn load(frame: &Frame, slot: Slot) -> [Self::Stored; LANES];
    /// Writes a result.
    ///
    /// # Safety
    /// As for [`Frame::store32`]; the slots must fit this element.
    unsafe fn store(frame: &mut Frame, to: &Operands, lanes: [Self::Stored; LANES], mask: u32);
    /// From the held form.
    fn open(stored: Self::Stored) -> Self;
    /// To the held form.
    fn close(self) -> Self::Stored;
}

macro_rules! element {
    ($ty:ty, $stored:ty, $load:ident, $store:ident, $open:expr, $close:expr) => {
        impl Element for $ty {
            type Stored = $stored;
            #[inline(always)]
            unsafe fn load(frame: &Frame, slot: Slot) -> [$stored; LANES] {
                // SAFETY: passed on to the caller.
                unsafe { frame.$load(slot) }
            }
            #[inline(always)]
            unsafe fn store(frame: &mut Frame, to: &Operands, lanes: [$stored; LANES], mask: u32) {
                // SAFETY: passed on to the caller.
                unsafe { frame.$store(to.d, lanes, mask) }
            }
            #[inline(always)]
            fn open(stored: $stored) -> $ty {
                let open: fn($stored) -> $ty = $open;
                open(stored)
            }
            #[inline(always)]
            fn close(self) -> $stored {
                let close: fn($ty) -> $stored = $close;
                close(self)
            }
        }
    };
}

element!(u32, u32, lanes32, store32, |x| x, |x| x);
element!(i32, u32, lanes32, store32, |x| x as i32, |x| x as u32);
element!(f32, u32, lanes32, store32, f32::from_bits, f32::to_bits);
element!(u16, u32, lanes32, store32, |x| x as u16, u32::from);
element!(i16, u32, lanes32, store32, |x| x as i16, |x| u32::from(x as u16));
element!(u8, u32, lanes32, store32, |x| x as u8, u32::from);
element!(i8, u32, lanes32, store32, |x| x as i8, |x| u32::from(x as u8));
element!(u64, u64, lanes64, store64, |x| x, |x| x);
element!(i64, u64, lanes64, store64, |x| x as i64, |x| x as u64);
element!(f64, u64, lanes64, store64, f64::from_bits, f64::to_bits);

/// An operand that is not there.
impl Element for () {
    type Stored = ();
    #[inline(always)]
    unsafe fn load(_: &Frame, _: Slot) -> [(); LANES] {
        [(); LANES]
    }
    #[inline(always)]
    unsafe fn store(_: &mut Frame, _: &Operands, _: [(); LANES], _: u32) {}
    #[inline(always)]
    fn open((): ()) {}
    #[inline(always)]
    fn close(self) {}
}

/// A comparison's result: goes to `p`, and inverted to `q`, both after the combining that
/// [`combine`] does.
impl Element for bool {
    type Stored = bool;
    #[inline(always)]
    unsafe fn load(_: &Frame, _: Slot) -> [bool; LANES] {
        [false; LANES]
    }
    #[inline(always)]
    unsafe fn store(frame: &mut Frame, to: &Operands, lanes: [bool; LANES], mask: u32) {
        let result = pack(lanes);
        // SAFETY: passed on to the caller.
        unsafe {
            let other = frame.predicate(to.r) ^ if to.flags & NEGATE_R == 0 { 0 } else { !0 };
            let (p, q) = combine(to.flags, result, other);
            frame.set_predicate(to.p, p, mask);
            frame.set_predicate(to.q, q, mask);
        }
    }
    #[inline(always)]
    fn open(stored: bool) -> bool {
        stored
    }
    #[inline(always)]
    fn close(self) -> bool {
        self
    }
}

/// The source predicate of a comparison is inverted.
pub(crate) const NEGATE_R: u16 = 1 << 8;
/// `.and` with the source predicate.
pub(crate) const COMBINE_AND: u16 = 1;
/// `.or` with the source predicate.
pub(crate) const COMBINE_OR: u16 = 2;
/// `.xor` with the source predicate.
pub(crate) const COMBINE_XOR: u16 = 3;

/// `p` and `q` of `setp` (ISA 9.7.6.2): `q` combines the inverted comparison.
#[inline(always)]
pub(crate) fn combine(flags: u16, result: u32, other: u32) -> (u32, u32) {
    match flags & 3 {
        COMBINE_AND => (result & other, !result & other),
        COMBINE_OR => (result | other, !result | other),
        COMBINE_XOR => (result ^ other, !result ^ other),
        _ => (result, !result),
    }
}

/// 32 truth values to a mask.
#[inline(always)]
pub(crate) fn pack(lanes: [bool; LANES]) -> u32 {
    let mut mask = 0;
    for (group, bytes) in lanes.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(bytes.map(u8::from));
        // Bytes of 0 or 1: the product gathers their low bits in the top byte.
        let bits = word.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= (bits as u32) << (8 * group);
    }
    mask
}

/// A function of one lane, up to three operands, one result.
pub(crate) trait Lane {
    /// The first operand.
    type A: Element;
    /// The second operand.
    type B: Element;
    /// The third operand.
    type C: Element;
    /// The result.
    type D: Element;
    /// The function that runs this on all lanes, compiled for the host.
    fn function(wide: bool) -> Compute;
    /// Computes one lane. `WIDE` says that the caller is compiled for AVX2 and FMA.
    fn lane<const WIDE: bool>(
        parameters: Parameters,
        a: Self::A,
        b: Self::B,
        c: Self::C,
    ) -> Self::D;
}

/// What runs an instruction that only computes.
///
/// # Safety
/// The operands must come from the lowering of the frame's program, and the host must have the
/// features that the function was compiled for.
pub(crate) type Compute = unsafe fn(&mut Frame, &Operands, u32);

/// Runs a lane function on all lanes.
#[inline(always)]
unsafe fn drive<L: Lane, const WIDE: bool>(frame: &mut Frame, operands: &Operands, mask: u32) {
    let parameters =
        Parameters { immediate: operands.immediate, flags: operands.flags, seed: frame.seed };
    // SAFETY: passed on to the caller, see `Compute`.
    unsafe {
        let a = L::A::load(frame, operands.a);
        let b = L::B::load(frame, operands.b);
        let c = L::C::load(frame, operands.c);
        let mut d = [<L::D as Element>::Stored::default(); LANES];
        for lane in 0..LANES {
            let (a, b, c) = (L::A::open(a[lane]), L::B::open(b[lane]), L::C::open(c[lane]));
            d[lane] = L::lane::<WIDE>(parameters, a, b, c).close();
        }
        L::D::store(frame, operands, d, mask);
    }
}

unsafe fn run_plain<L: Lane>(frame: &mut Frame, operands: &Operands, mask: u32) {
    // SAFETY: passed on to the caller.
    unsafe { drive::<L, false>(frame, operands, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn run_wide<L: Lane>(frame: &mut Frame, operands: &Operands, mask: u32) {
    // SAFETY: passed on to the caller.
    unsafe { drive::<L, true>(frame, operands, mask) }
}

/// The function that runs a lane function, compiled once more for hosts with AVX2.
pub(crate) fn twice<L: Lane>(wide: bool) -> Compute {
    #[cfg(target_arch = "x86_64")]
    if wide {
        return run_wide::<L>;
    }
    let _ = wide;
    run_plain::<L>
}

/// The function that runs a rare or slow lane function, compiled once for all hosts.
pub(crate) fn once<L: Lane>(_wide: bool) -> Compute {
    run_plain::<L>
}

/// Whether the host has what the wide functions are compiled for.
pub(crate) fn host_is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("f16c")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Declares lane functions: `Name(a: A, b: B) -> D { ... }`, or `Name<T: Bound>(...)` for a family
/// over a type. `Name([parameters] a: A)` also sees the [`Parameters`]. After `once:` they are
/// compiled once, which keeps rare ones from filling the binary.
macro_rules! lanes {
    (once: $($rest:tt)*) => { $crate::execute::frame::lanes!(@with once $($rest)*); };
    (@with $how:ident $($(#[$meta:meta])* $name:ident $(<$t:ident: $bound:path>)?
        ($([$param:ident])? $a:ident: $ta:ty $(, $b:ident: $tb:ty $(, $c:ident: $tc:ty)?)?)
        -> $td:ty $body:block)*) => {
        $(
            $(#[$meta])*
            pub(crate) struct $name $(<$t>(std::marker::PhantomData<$t>))?;
            impl $(<$t: $bound>)? $crate::execute::frame::Lane for $name $(<$t>)? {
                type A = $ta;
                type B = $crate::execute::frame::lanes!(@type $($tb)?);
                type C = $crate::execute::frame::lanes!(@type $($($tc)?)?);
                type D = $td;
                fn function(wide: bool) -> $crate::execute::frame::Compute {
                    $crate::execute::frame::$how::<Self>(wide)
                }
                #[inline(always)]
                fn lane<const WIDE: bool>(
                    parameters: $crate::execute::frame::Parameters,
                    $a: Self::A,
                    b: Self::B,
                    c: Self::C,
                ) -> $td {
                    $(let $param = parameters;)?
                    $(let $b = b; $(let $c = c;)?)?
                    let _ = (parameters, b, c);
                    $body
                }
            }
        )*
    };
    (@type) => { () };
    (@type $ty:ty) => { $ty };
    ($($all:tt)*) => { $crate::execute::frame::lanes!(@with twice $($all)*); };
}
pub(crate) use lanes;

/// `selp`: `a` where predicate `r` is true, `b` elsewhere.
#[inline(always)]
unsafe fn drive_select<const BITS64: bool>(frame: &mut Frame, operands: &Operands, mask: u32) {
    // SAFETY: passed on to the caller, see `Compute`.
    unsafe {
        let chosen = frame.predicate(operands.r);
        if BITS64 {
            let (a, b) = (frame.lanes64(operands.a), frame.lanes64(operands.b));
            let mut d = b;
            for lane in 0..LANES {
                let keep = u64::from((chosen >> lane) & 1).wrapping_sub(1);
                d[lane] = (b[lane] & keep) | (a[lane] & !keep);
            }
            frame.store64(operands.d, d, mask);
        } else {
            let (a, b) = (frame.lanes32(operands.a), frame.lanes32(operands.b));
            let mut d = b;
            for lane in 0..LANES {
                let keep = ((chosen >> lane) & 1).wrapping_sub(1);
                d[lane] = (b[lane] & keep) | (a[lane] & !keep);
            }
            frame.store32(operands.d, d, mask);
        }
    }
}

unsafe fn select_plain<const BITS64: bool>(frame: &mut Frame, operands: &Operands, mask: u32) {
    // SAFETY: passed on to the caller.
    unsafe { drive_select::<BITS64>(frame, operands, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
unsafe fn select_wide<const BITS64: bool>(frame: &mut Frame, operands: &Operands, mask: u32) {
    // SAFETY: passed on to the caller.
    unsafe { drive_select::<BITS64>(frame, operands, mask) }
}

/// The function that runs `selp`.
pub(crate) fn select(bits64: bool, wide: bool) -> Compute {
    #[cfg(target_arch = "x86_64")]
    if wide {
        return if bits64 { select_wide::<true> } else { select_wide::<false> };
    }
    let _ = wide;
    if bits64 { select_plain::<true> } else { select_plain::<false> }
}
