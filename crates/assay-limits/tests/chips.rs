//! Files of chips: what is built in, what a user may add, and how errors name the place.

use assay_limits::{Chip, Chips, Rule, Vendor};

#[test]
fn the_chips_of_three_vendors_are_built_in_in_the_order_in_which_people_count_them() {
    let chips = Chips::built_in();
    let names: Vec<&str> = chips.all().iter().map(Chip::name).collect();
    let cuda =
        ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"];
    let hip = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1200", "gfx1201"];
    let metal = ["M1", "M2", "M3", "M4", "M5"];
    assert_eq!(names, [&cuda[..], &hip[..], &metal[..]].concat());
    assert_eq!(chips.chip("gfx1100").map(Chip::vendor), Some(Vendor::Hip));
    assert_eq!(chips.chip("sm_75"), None);
}

const SMALL: &str = r#"
[source]
paper = "a paper"

[metal.A18]
products = "a phone"
family = { value = 9, source = "paper" }
block = { value = [1024, 1024, 1024], source = "paper" }
threads_per_threadgroup = { value = 1024, source = "paper" }
execution_width = { value = 32, source = "paper", unconfirmed = true }
threadgroup_bytes = { value = 32768, source = "paper" }
threadgroup_alignment = { value = 16, source = "paper" }
"#;

#[test]
fn a_chip_is_added_as_a_table_and_says_what_is_unconfirmed() {
    let mut chips = Chips::built_in();
    chips.add(Chips::parse(SMALL, "mine.toml").expect("it parses")).expect("it is new");
    let added = chips.chip("A18").expect("it is there");
    assert_eq!(added.vendor(), Vendor::Metal);
    assert_eq!(added.unconfirmed(), ["execution_width"]);
    assert_eq!(chips.source("paper"), Some("a paper"));
}

#[test]
fn a_chip_that_is_there_already_is_refused() {
    let twice = Chips::parse(&SMALL.replace("A18", "M1"), "mine.toml").expect("it parses");
    let error = Chips::built_in().add(twice).expect_err("M1 is built in").to_string();
    assert_eq!(error, "the chip `M1` is there already: give yours another name");
}

#[test]
fn errors_name_the_file_the_table_and_the_key() {
    let wrong = [
        ("family = ", "familie = ", "mine.toml: [metal.A18] `family` is missing"),
        ("products", "warps = 3\nproducts", "mine.toml: [metal.A18] `warps` is no key of a chip"),
        ("\"a phone\"", "3", "mine.toml: [metal.A18] `products` must be a text"),
        (
            "value = 9,",
            "value = -9,",
            "mine.toml: [metal.A18] `family` must be { value = 64, source = \"NAME\" }, of whole \
             numbers from 1 up",
        ),
        (
            "value = 9,",
            "value = 0,",
            "mine.toml: [metal.A18] `family` must be { value = 64, source = \"NAME\" }, of whole \
             numbers from 1 up",
        ),
        (
            "[1024, 1024, 1024]",
            "[1024, 1024]",
            "mine.toml: [metal.A18] `block` must be { value = [1024, 1024, 64], source = \
             \"NAME\" }, of whole numbers from 1 up",
        ),
        (
            "{ value = 9, source = \"paper\" }",
            "9",
            "mine.toml: [metal.A18] `family` must be { value = 64, source = \"NAME\" }, of whole \
             numbers from 1 up",
        ),
        (
            "9, source = \"paper\"",
            "9, source = \"book\"",
            "mine.toml: [metal.A18] `family` names the source `book`, which [source] does not have",
        ),
        (
            "unconfirmed = true",
            "unconfirmed = 1",
            "mine.toml: [metal.A18] `execution_width` has `unconfirmed`, which must be true or \
             false",
        ),
        (
            "unconfirmed = true",
            "confirmed = true",
            "mine.toml: [metal.A18] `execution_width` has the unknown key `confirmed`",
        ),
        (
            "[metal.A18]",
            "[intel.A18]",
            "mine.toml: `intel` is no table of chips: write [cuda.NAME], [hip.NAME], [metal.NAME] \
             or [source.NAME]",
        ),
    ];
    for (from, to, message) in wrong {
        let text = SMALL.replace(from, to);
        assert_ne!(text, SMALL, "{from}");
        let error = Chips::parse(&text, "mine.toml").expect_err(message).to_string();
        assert_eq!(error, message);
    }
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    let error = Chips::parse("[metal.A18]\nfamily = = 3\n", "mine.toml").expect_err("no TOML");
    assert!(error.to_string().starts_with("mine.toml: TOML parse error at line 2"), "{error}");
}

#[test]
fn every_chip_that_is_built_in_names_sources_that_are_there() {
    let chips = Chips::built_in();
    for chip in chips.all() {
        for (key, source, _) in chip.origins() {
            assert!(chips.source(source).is_some(), "{}: {key}", chip.name());
        }
    }
}

#[test]
fn the_docs_explain_every_rule_and_every_chip() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
    let docs = std::fs::read_to_string(docs).expect("the docs are there");
    for rule in Rule::ALL {
        assert!(docs.contains(&format!("`{}`", rule.name())), "{} is not explained", rule.name());
        let json = serde_json::to_string(&rule).expect("a rule has a name in JSON");
        assert_eq!(json, format!("\"{}\"", rule.name()), "one name everywhere");
    }
    for chip in Chips::built_in().all() {
        let short = chip.name().trim_start_matches("sm_").trim_start_matches("gfx");
        assert!(docs.contains(short), "{} is not named", chip.name());
    }
}
