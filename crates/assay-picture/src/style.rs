//! The colours, for light and dark pages, and the fonts.

/// Ink and paper first, then the series, each as (class, light, dark). Series colours stay apart
/// for the common colour blindnesses and keep a contrast of at least 4.5 to 1 to the paper.
const INKS: [(&str, &str, &str); 12] = [
    ("paper", "#ffffff", "#14171c"),
    ("ink", "#1c2024", "#e8eaed"),
    ("soft", "#5b616b", "#a3a9b4"),
    ("grid", "#e1e4e8", "#2c323b"),
    ("axis", "#8b919b", "#6b727d"),
    ("s0", "#0b62c4", "#6db3ff"),
    ("s1", "#b04d00", "#ffa15e"),
    ("s2", "#087552", "#4fd6a0"),
    ("s3", "#8636b4", "#cf9bf2"),
    ("s4", "#0c6b82", "#5bd0e6"),
    ("s5", "#7a6200", "#e3c44d"),
    ("bad", "#c4262e", "#ff7b7b"),
];

/// How many series colours there are.
const SERIES: usize = 6;

/// Steps of the heat map from none to the limit: dark on light paper, bright on dark.
const HEAT: [(&str, &str); 8] = [
    ("#e4edf7", "#232d39"),
    ("#cbddf1", "#22384f"),
    ("#b0cdea", "#234a70"),
    ("#86b3de", "#2a6399"),
    ("#5a95cd", "#3b80bf"),
    ("#3677b7", "#5b9edb"),
    ("#1d5996", "#8abdee"),
    ("#0b3a6b", "#c4dff8"),
];

/// The class of series `index`.
pub(crate) fn series(index: usize) -> &'static str {
    INKS[5 + index % SERIES].0
}

/// How many steps a heat map has.
pub(crate) const HEAT_STEPS: usize = HEAT.len();

/// The style sheet of every picture.
pub(crate) fn sheet() -> String {
    let rules = |dark: bool| -> String {
        let ink = |&(class, light, night): &(&str, &str, &str)| {
            let color = if dark { night } else { light };
            format!(".f-{class}{{fill:{color}}}.l-{class}{{stroke:{color}}}")
        };
        let heat = |(step, &(light, night)): (usize, &(&str, &str))| {
            format!(".f-h{step}{{fill:{}}}", if dark { night } else { light })
        };
        INKS.iter().map(ink).chain(HEAT.iter().enumerate().map(heat)).collect()
    };
    format!(
        "text{{font-family:ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;\
         font-variant-numeric:tabular-nums}}\
         .b{{font-weight:600}}.n{{fill:none}}.dash{{stroke-dasharray:6 4}}\
         .half{{opacity:.55}}\
         {}@media(prefers-color-scheme:dark){{{}}}",
        rules(false),
        rules(true)
    )
}
