//! What is no PTX is one clear error with its place.

use assay_ptx::{ParseError, parse};

/// Puts statements into a kernel with registers of most types.
fn kernel(statements: &str) -> String {
    format!(
        ".version 8.7\n.target sm_80\n.address_size 64\n.global .b32 table[4];\n\
         .func (.param .b32 r) helper(.param .b32 a);\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<4>;\n\
         .reg .f64 %fd<4>;\n{statements}\nret;\n}}\n"
    )
}

fn rejected(statements: &str) -> ParseError {
    match parse(&kernel(statements)) {
        Ok(_) => panic!("`{statements}` is accepted"),
        Err(error) => error,
    }
}

fn accepted(statements: &str) {
    if let Err(error) = parse(&kernel(statements)) {
        panic!("`{statements}`: {error}");
    }
}

/// The message and the hint of the error of a statement.
fn complaint(statement: &str) -> (String, String) {
    let error = rejected(statement);
    (error.message, error.hint.unwrap_or_default())
}

#[test]
fn an_error_names_the_place_draws_the_line_and_gives_a_hint() {
    let error = rejected("\tadd.fzt.f32 %f1, %f2, %f3;");
    assert_eq!((error.line, error.column), (10, 6));
    let expected = "10:6: unknown modifier `.fzt` on `add`\n     add.fzt.f32 %f1, %f2, %f3;\n\
                    \u{20}        ^\n  hint: did you mean `.ftz`?";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_unknown_modifier_is_never_ignored() {
    let message = "unknown modifier `.foo` on `ld`";
    assert_eq!(complaint("ld.global.foo.f32 %f1, [%rd1];").0, message);
    // Known elsewhere, but meaningless here.
    assert_eq!(complaint("add.bfly.f32 %f1, %f2, %f3;").0, "`add` takes no `.bfly`");
    let (message, _) = complaint("add.ftz.f64 %fd1, %fd2, %fd3;");
    assert_eq!(message, "the parts of `add.ftz.f64` do not go together");
    let (message, _) = complaint("add.rn.s32 %r1, %r2, %r3;");
    assert_eq!(message, "the parts of `add.rn.s32` do not go together");
    assert!(complaint("add.sat.sat.f32 %f1, %f2, %f3;").0.contains("written twice"));
    assert!(complaint("add.rn.rz.f32 %f1, %f2, %f3;").0.contains("do not go together"));
}

#[test]
fn a_missing_part_is_named_by_the_forms_that_exist() {
    let (message, hint) = complaint("fma.f32 %f1, %f2, %f3, %f4;");
    assert_eq!(message, "the parts of `fma.f32` do not go together");
    assert_eq!(hint, "known forms: `fma` .rn or .rz or .rm or .rp [.ftz] [.sat] on f32");
    assert_eq!(complaint("add %r1, %r2, %r3;").0, "`add` needs a type");
    assert_eq!(complaint("add.pred %p1, %p2, %p3;").0, "`add` does not take the type .pred");
}

#[test]
fn an_unknown_opcode_or_operation_gets_a_hint() {
    let (message, hint) = complaint("mvo.b32 %r1, %r2;");
    assert_eq!(message, "unknown opcode `mvo.b32`");
    assert_eq!(hint, "did you mean `mov`?");
    let (message, hint) = complaint("mbarrier.invent.b64 [%rd1];");
    assert_eq!(message, "unknown opcode `mbarrier.invent.b64`");
    assert!(hint.starts_with("known operations of `mbarrier`: mbarrier.arrive"), "{hint}");
}

#[test]
fn the_caret_stands_under_the_place_behind_wide_characters() {
    let error = rejected("/* \u{3b1}\u{3b2} */ mov.b32 %r1, !;");
    let shown = error.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let under = lines[2].chars().position(|c| c == '^');
    assert_eq!(under.and_then(|at| lines[1].chars().nth(at)), Some(';'));
}

#[test]
fn an_unknown_directive_is_an_error() {
    let (message, hint) = complaint(".rge .b32 %x;");
    assert_eq!(message, "unknown directive `.rge`");
    assert_eq!(hint, "did you mean `.reg`?");
    let error = parse(".version 8.0\n.target sm_80\n.entri k() { ret; }").unwrap_err();
    assert_eq!((error.line, error.column), (3, 1));
    assert_eq!(error.hint.as_deref(), Some("did you mean `.entry`?"));
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    assert_eq!(complaint("mov.b32 %r1, %tidd.x;").0, "unknown name `%tidd.x`");
    assert_eq!(complaint("mov.u64 %rd1, tabel;").1, "did you mean `table`?");
    assert_eq!(complaint("mov.b32 %r9, 1;").1, "`.reg` declares `%r<8>`, which ends before it");
    assert_eq!(complaint("L1: bra L2;").0, "the label `L2` is not in this function");
    assert_eq!(complaint("mov.u32 %r1, %tid;").1, "name an axis: `%tid.x`");
}

#[test]
fn registers_must_fit_the_types_they_stand_for() {
    for statement in [
        "add.s32 %f1, %f2, %f3;",
        "add.f32 %f1, %f2, %fd1;",
        "add.f32 %f1, %f2, 1;",
        "add.s32 %r1, %r2, 0f3F800000;",
        "add.s64 %rd1, %rd2, %r1;",
        "selp.b32 %r1, %r2, %r3, %r4;",
        "setp.eq.s32 %r1, %r2, %r3;",
        "ld.global.u32 %f1, [%rd1];",
        "ld.global.u64 %r1, [%rd1];",
        "ld.global.u32 %r1, [%f1];",
        "fma.rn.f16 %h1, %h2, %h3, 0x3C00;",
        "add.u32 %r1, %tid.x, 1;",
        "add.u64 %rd1, %rd2, table;",
        "@%r1 mov.b32 %r1, %r2;",
        "mov.b64 %rd1, {%r1, %h1};",
    ] {
        rejected(statement);
    }
    for statement in [
        "add.f32 %r1, %f2, %f3;",
        "and.b32 %f1, %f2, %r3;",
        "ld.global.u8 %rd1, [%rd1];",
        "st.global.u8 [%rd1], %r1;",
        "cvt.u64.u32 %rd1, %tid.x;",
        "mov.b64 %rd1, {%r1, %f1};",
        "mov.b64 {_, %r1}, %rd1;",
        "fma.rn.f16x2 %r1, %r2, %r3, %r4;",
        "add.f32 %f1, %f2, 1.5;",
        "mov.pred %p1, !%p2;",
    ] {
        accepted(statement);
    }
}

#[test]
fn operand_counts_are_checked() {
    assert_eq!(complaint("add.s32 %r1, %r2;").0, "`add.s32` takes 3 operands, but 2 are written");
    assert!(complaint("bar.sync;").0.contains("takes 1 or 2 operands"));
    assert!(complaint("ld.global.v4.f32 {%f1, %f2}, [%rd1];").0.contains("a vector of 4"));
}

#[test]
fn calls_are_checked_against_the_signature() {
    let with = |call: &str| format!(".param .b32 a; .param .b32 b; .param .b64 c; {call}");
    accepted(&with("call.uni (b), helper, (a);"));
    accepted(&with("pr: .callprototype _ (.param .b64 _); call %rd1, (c), pr;"));
    assert!(complaint(&with("call (b), helper, (a, a);")).0.contains("has 1 arguments"));
    assert!(complaint(&with("call helper, (a);")).0.contains("has 1 returned values"));
    assert!(complaint(&with("call (b), helper, (c);")).0.contains("has 4 bytes"));
    assert!(complaint(&with("call %rd1, (c);")).0.contains("needs a prototype"));
}

#[test]
fn duplicates_are_errors() {
    assert_eq!(complaint(".reg .b32 %r<3>;").0, "`%r` is declared twice");
    assert_eq!(complaint("L: L: bra L;").0, "`L` is declared twice");
    let twice = format!("{}.visible .entry k() {{ ret; }}", kernel(""));
    assert_eq!(parse(&twice).unwrap_err().message, "`k` is declared twice");
}

#[test]
fn broken_files_name_the_place() {
    assert_eq!(parse("").unwrap_err().hint.as_deref(), Some("PTX starts with `.version`"));
    let cut = parse(".version 8.0\n.target sm_80\n.entry k()\n{\nmov.b32").unwrap_err();
    assert_eq!(cut.line, 5);
    let open = parse(".version 8.0\n.target sm_80\n.entry k()\n{\n").unwrap_err();
    assert_eq!((open.line, open.message.as_str()), (4, "this `{` is never closed"));
    let binary = parse("\u{7f}ELF").unwrap_err();
    assert!(binary.hint.is_some_and(|hint| hint.contains("binary")));
}

#[test]
fn a_kernel_that_is_cut_anywhere_is_an_error_with_a_line_of_the_text() {
    let whole = kernel("add.s32 %r1, %r2, 0x10;\nld.global.v2.f32 {%f1, %f2}, [%rd1+8];");
    let body = whole.find(".visible").expect("there is a kernel");
    let end = whole.rfind('}').expect("it ends");
    for cut in body + 1..=end {
        let text = &whole[..cut];
        let error = parse(text).err().unwrap_or_else(|| panic!("{text:?} is accepted"));
        let lines = text.split('\n').count() as u32;
        assert!((1..=lines).contains(&error.line), "{error}\n{text}");
    }
}

#[test]
fn garbage_in_a_kernel_is_an_error_at_its_line() {
    let garbage = ["???", "\u{0}\u{1}\u{2};", "add add add;", "\u{fffd}%&$#", "1234;", ") ret;"];
    for garbage in garbage {
        let error = rejected(&format!("add.s32 %r1, %r2, %r3;\n\n{garbage}\n"));
        assert_eq!(error.line, 12, "{garbage:?}: {error}");
        assert!(!error.message.is_empty() && error.to_string().starts_with("12:"), "{error}");
    }
}

#[test]
fn constants_of_warpgroup_instructions_keep_to_what_the_isa_has() {
    accepted("setmaxnreg.inc.sync.aligned.u32 232;");
    let (message, _) = complaint("setmaxnreg.inc.sync.aligned.u32 20;");
    assert!(message.contains("a multiple of 8 from 24 to 256, not 20"), "{message}");
    let product = |width: u16, types: &str, rest: &str| {
        let d = if types.starts_with("s32") { "%r" } else { "%f" };
        let d: Vec<String> = (0..width / 2).map(|i| format!("{d}{}", i % 8)).collect();
        let k = if types.contains("f16") { 16 } else { 32 };
        let (opcode, d) = (format!("m64n{width}k{k}.{types}"), d.join(", "));
        format!("wgmma.mma_async.sync.aligned.{opcode} {{{d}}}, %rd1, %rd2, %p1{rest};")
    };
    accepted(&product(8, "f32.f16.f16", ", 1, -1, 0, 1"));
    let (message, _) = complaint(&product(8, "f32.f16.f16", ", 2, 1, 0, 1"));
    assert!(message.contains("2 stands where"), "{message}");
    let (message, _) = complaint(&product(8, "f32.f16.f16", ", 1, 1, -1, 0"));
    assert!(message.contains("-1 stands where"), "{message}");
    accepted(&product(48, "s32.s8.u8", ""));
    let (message, _) = complaint(&product(40, "s32.s8.u8", ""));
    assert!(message.contains("no products of 40 columns"), "{message}");
}
